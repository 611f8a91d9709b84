// pkc: opt -p pk-check-roles
pk.kernel @k() attributes {comm_sms = 132 : i64} {
  pk.role loader warps 1 attributes {group = "compute", first_warp = 0 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
  pk.role communicator warps 2 attributes {group = "communicate", first_warp = 0 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
}
