// pkc: opt -p pk-check-machine
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 96 : i64} {
  pk.comment "three warps"
}
