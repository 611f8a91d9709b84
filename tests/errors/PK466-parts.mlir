// pkc: opt -p pk-plan-warps
pk.kernel @k() attributes {schedule = {consumers = 3 : i64}} {
  pk.role loader {
    %rank = pk.rank
  }
  pk.role consumer {
    %rank = pk.rank
  }
  pk.role consumer {
    %rank = pk.rank
  }
  pk.role consumer {
    %rank = pk.rank
  }
}
