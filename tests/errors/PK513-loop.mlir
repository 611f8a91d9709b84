// pkc: opt -p pk-check-machine
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %acc = pk.registers : !pk.registers<8xf32>
  scf.for %i = %zero to %four step %one {
    %x = pk.get %acc[%i] : !pk.registers<8xf32> -> f32
  }
}
