// What the machine level leaves to nobody after it.
// RUN: pkc-opt %s -p pk-check-machine --split-input-file --verify-diagnostics | filecheck %s

// All is well: constants, loops that are written out, arithmetic on both; a barrier of one number of threads.
// CHECK-LABEL: pk.kernel @good
// CHECK: pk.get
pk.kernel @good(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 256 : i64, shared_bytes = 232448 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %acc = pk.registers : !pk.registers<8xf32>
  pk.instruction "setmaxnreg_inc_240"() : () -> ()
  pk.instruction "sync_1_of_128"() : () -> ()
  scf.for %i = %zero to %four step %one {
    %twice = arith.muli %i, %one : index
    %x = pk.get %acc[%twice] : !pk.registers<8xf32> -> f32
    pk.set %x, %acc[%zero] : f32, !pk.registers<8xf32>
  } {unroll}
  pk.instruction "sync_1_of_128"() : () -> ()
}

// -----

// A tile is left.
// CHECK: error[PK512]: `pk.full` is not an operation of the machine level
pk.kernel @tile(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %x = pk.full 0.000000e+00 : f32 : !pk.tile<8xf32>
}

// -----

// A loop that carries a value.
// CHECK: error[PK512]: `scf.for` is not an operation of the machine level
pk.kernel @carried(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %sum = scf.for %i = %zero to %one step %one iter_args(%s = %zero) -> (index) {
    scf.yield %s : index
  }
}

// -----

// A branch with another side.
// CHECK: error[PK512]: `scf.if` is not an operation of the machine level
pk.kernel @else(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %yes = arith.constant true
  scf.if %yes {
  } else {
    pk.comment "no"
  }
}

// -----

// The loop runs when the kernel does.
// CHECK: error[PK513]: a register of !pk.registers<8xf32> is chosen when the kernel runs
pk.kernel @loop(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %four = arith.constant 4 : index
  %acc = pk.registers : !pk.registers<8xf32>
  scf.for %i = %zero to %four step %one {
    %x = pk.get %acc[%i] : !pk.registers<8xf32> -> f32
  }
}

// -----

// It is to be written out, and nobody knows how often.
// CHECK: error[PK513]: a register of !pk.registers<8xf32> is chosen when the kernel runs
pk.kernel @bound(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %m = pk.dim "M"
  %v = arith.constant 0.000000e+00 : f32
  %acc = pk.registers : !pk.registers<8xf32>
  scf.for %i = %zero to %m step %one {
    pk.set %v, %acc[%i] : f32, !pk.registers<8xf32>
  } {unroll}
}

// -----

// The number of the thread.
// CHECK: error[PK513]: a register of !pk.registers<8xf32> is chosen when the kernel runs
pk.kernel @thread(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  %t = pk.instruction "thread_number"() : () -> index
  %acc = pk.registers : !pk.registers<8xf32>
  %x = pk.get %acc[%t] : !pk.registers<8xf32> -> f32
}

// -----

// Two numbers of threads at one barrier.
// CHECK: error[PK514]: barrier 1 counts 256 threads here and 128 elsewhere
pk.kernel @barrier(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 256 : i64} {
  pk.instruction "sync_1_of_128"() : () -> ()
  pk.instruction "sync_1_of_256"() : () -> ()
}

// -----

// Not a warpgroup, and too many of them.
// CHECK: error[PK515]: `few` has 96 threads
// CHECK: error[PK515]: `many` has 1152 threads
pk.kernel @few(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 96 : i64} {
  pk.comment "nothing"
}
pk.kernel @many(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 1152 : i64} {
  pk.comment "nothing"
}

// -----

// More registers than the compiler can do with.
// CHECK: error[PK515]: a thread is to have 248 registers
pk.kernel @registers(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64} {
  pk.instruction "setmaxnreg_inc_248"() : () -> ()
}

// -----

// More shared memory than there is.
// CHECK: error[PK435]: `shared` needs 232449 bytes of shared memory, and a CTA has 232448
pk.kernel @shared(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {threads = 128 : i64, shared_bytes = 232449 : i64} {
  pk.comment "nothing"
}
