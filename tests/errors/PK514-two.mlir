// pkc: opt -p pk-check-machine
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 256 : i64} {
  pk.instruction "sync_1_of_128"() : () -> ()
  pk.instruction "sync_1_of_256"() : () -> ()
}
