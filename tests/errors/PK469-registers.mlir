// pkc: opt -p pk-check-roles
pk.kernel @k() attributes {comm_sms = 0 : i64} {
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 240 : i64} {
    %rank = pk.rank
  }
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    %rank = pk.rank
  }
}
