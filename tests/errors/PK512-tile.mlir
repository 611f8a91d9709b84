// pkc: opt -p pk-check-machine
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %x = pk.full 0.000000e+00 : f32 : !pk.tile<8xf32>
}
