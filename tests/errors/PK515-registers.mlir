// pkc: opt -p pk-check-machine
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  pk.instruction "setmaxnreg_inc_248"() : () -> ()
}
