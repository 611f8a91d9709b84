// pkc: opt -p pk-check-roles
pk.kernel @k() attributes {comm_sms = 0 : i64} {
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 2 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 4 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 6 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 10 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 12 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 14 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 16 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 18 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 20 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 22 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 24 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 26 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 28 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "compute", first_warp = 30 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
}
