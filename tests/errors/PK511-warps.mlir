// pkc: opt -p pk-plan-memory,pk-plan-barriers,pk-lower-tiles
pk.kernel @copy(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {derived, comm_sms = 0 : i64} {
  pk.role loader {
    %0 = pk.rank
  }
}
