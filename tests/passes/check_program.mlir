// RUN: pkc-opt %s -p pk-check-program --split-input-file --verify-diagnostics | filecheck %s

// Tasks (i, 0), (i, 1), ... write the same block.
// CHECK: error[PK401]: two tasks write the same elements of `C`
// CHECK: `j` takes no part in what is written here
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i, %j) in (%n, %n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// One task for each block; a count of one repeats nothing.
// CHECK: pk.kernel @one
pk.kernel @one(%C: !pk.private<[M], f32> {pk.name = "C"}, %D: !pk.private<[M], f32> {pk.name = "D"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %w = pk.block_count <8 by 8>
  pk.tasks (%i, %j, %k) in (%n, %one, %w) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
  pk.tasks (%i) in (%one) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%zero] : !pk.block<M by 8>
    pk.store %t, %D[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// An index that a loop leaves as it is says nothing about the task; the outer tasks repeat the inner.
// CHECK: error[PK401]: two tasks write the same elements of `C`
// CHECK: `i` takes no part in what is written here
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    pk.tasks (%j) in (%n) {
      %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
      scf.for %k = %zero to %n step %one {
        %m = pk.block[%j] : !pk.block<M by 8>
        pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
      }
    }
  }
}

// -----

// Dependence through a value that a loop carries, and through a branch.
// CHECK: pk.kernel @carried
pk.kernel @carried(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i, %j) in (%n, %n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %last = scf.for %k = %zero to %n step %one iter_args(%c = %i) -> (index) {
      %d = arith.addi %c, %one : index
      scf.yield %d : index
    }
    %q = arith.cmpi eq, %j, %zero : index
    scf.if %q {
      %m = pk.block[%last] : !pk.block<M by 8>
      pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// Each task writes another rank's copy.
// CHECK: pk.kernel @copies
pk.kernel @copies(%C: !pk.pgl<[M], f32, symmetric> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %ranks = pk.dim "ranks"
  pk.tasks (%r) in (%ranks) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%zero] : !pk.block<M by 8>
    pk.store %t, %C at %r[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, symmetric>
  }
}

// -----

// Every rank runs every task.
// CHECK: error[PK402]: every rank writes the same elements of `C`
// CHECK: = help: `+=` sums over ranks; `blocks(..., of=rank)` gives each rank the blocks of its shard
pk.kernel @k(%C: !pk.pgl<[M], f32, shard 0> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%i] : !pk.block<M by 8>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, shard 0>
  }
}

// -----

// What all ranks read alike makes no difference.
// CHECK: error[PK402]: every rank writes the same elements of `C`
pk.kernel @k(%C: !pk.pgl<[M], f32, replicate> {pk.name = "C"}, %I: !pk.pgl<[M], i32, replicate> {pk.name = "I"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %p = pk.read %I[%i] : !pk.pgl<[M], i32, replicate>
    %m = pk.block[%p] : !pk.block<M by 8>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
  }
}

// -----

// The rank's local blocks, blocks named by a private table, and one rank only.
// CHECK: pk.kernel @local
pk.kernel @local(%C: !pk.pgl<[M], f32, shard 0> {pk.name = "C"}, %D: !pk.pgl<[M], f32, replicate> {pk.name = "D"}, %E: !pk.pgl<[M], f32, replicate> {pk.name = "E"}, %I: !pk.private<[M], i32> {pk.name = "I"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %rank = pk.rank
  %own = pk.block_count <M by 8> of %rank
  pk.tasks (%i) in (%own) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%i] of %rank : !pk.block<M by 8>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, shard 0>
  }
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %p = pk.read %I[%i] : !pk.private<[M], i32>
    %m = pk.block[%p] : !pk.block<M by 8>
    pk.store %t, %D[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
  }
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %q = arith.cmpi eq, %rank, %zero : index
    scf.if %q {
      %m = pk.block[%i] : !pk.block<M by 8>
      pk.store %t, %E[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
    }
  }
}

// -----

// A sum is complete at the end of the phase.
// CHECK: error[PK403]: `C` is read while it is summed
// CHECK: summed here
pk.kernel @k(%C: !pk.pgl<[M], f32, replicate> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %x = pk.load %C[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, replicate> -> !pk.tile<8xf32>
    pk.accumulate %x, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
  }
}

// -----

// Read in the next phase.
// CHECK: pk.kernel @next
pk.kernel @next(%C: !pk.pgl<[M], f32, replicate> {pk.name = "C"}, %D: !pk.private<[M], f32> {pk.name = "D"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%i] : !pk.block<M by 8>
    pk.accumulate %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
  }
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %x = pk.load %C[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, replicate> -> !pk.tile<8xf32>
    pk.store %x, %D[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// Another task may write what this one reads.
// CHECK: error[PK404]: `C` is read and written by the same `tasks`
// CHECK: written here
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %f = pk.block[%zero] : !pk.block<M by 8>
    %x = pk.load %C[%f : !pk.block<M by 8>] : !pk.private<[M], f32> -> !pk.tile<8xf32>
    pk.store %x, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// The same tile of two ranks.
// CHECK: error[PK404]: `C` is read and written by the same `tasks`
pk.kernel @k(%C: !pk.pgl<[M], f32, symmetric> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %p = pk.ring_peer %one
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %x = pk.load %C at %p[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<8xf32>
    pk.store %x, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, symmetric>
  }
}

// -----

// A sum over all copies of what one rank writes.
// CHECK: error[PK404]: `C` is read and written by the same `tasks`
pk.kernel @k(%C: !pk.pgl<[M], f32, symmetric> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %x = pk.reduce %C[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<8xf32>
    pk.store %x, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, symmetric>
  }
}

// -----

// The very same tile, also when its block is made twice; this rank by name or not.
// CHECK: pk.kernel @same
pk.kernel @same(%C: !pk.pgl<[M], f32, symmetric> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %rank = pk.rank
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %o = pk.block[%i] : !pk.block<M by 8>
    %x = pk.load %C[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<8xf32>
    pk.store %x, %C at %rank[%o : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, symmetric>
  }
}

// -----

// A sum begins at zero, whatever was stored.
// CHECK: error[PK405]: `C` is both stored and summed by the same `tasks`
pk.kernel @k(%C: !pk.pgl<[M], f32, shard 0> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %rank = pk.rank
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%i] : !pk.block<M by 8>
    %o = pk.block[%i] of %rank : !pk.block<M by 8>
    pk.store %t, %C[%o : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, shard 0>
    pk.accumulate %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, shard 0>
  }
}

// -----

// Nobody signals.
// CHECK: error[PK406]: nothing signals `ready`
// CHECK: add `signal(ready.at(r)[...], 1)`
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.role consumer {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%zero] : !pk.block<M by 8>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
  }
}

// -----

// Another role signals, or the barrier does.
// CHECK: pk.kernel @met
pk.kernel @met(%C: !pk.private<[M], f32> {pk.name = "C"}, %ready: !pk.signal<[1]> {pk.name = "ready"}, %done: !pk.signal<[1]> {pk.name = "done"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.role consumer {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%zero] : !pk.block<M by 8>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
  }
  pk.role communicator {
    pk.signal_all %ready[%zero] by %one : !pk.signal<[1]>
    pk.barrier %done[%zero] : !pk.signal<[1]>
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
  }
}

// -----

// Signals without roles.
// CHECK: error[PK407]: `wait` outside a role
// CHECK: error[PK407]: `signal_all` outside a role
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
  %m = pk.block[%zero] : !pk.block<M by 8>
  pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  pk.wait %ready[%zero] for %one : !pk.signal<[1]>
  pk.signal_all %ready[%zero] by %one : !pk.signal<[1]>
}

// -----

// A store and an empty set of tasks beside a role.
// CHECK: error[PK408]: a statement beside the roles of a kernel
// CHECK: a role of this kernel
// CHECK: error[PK408]: a statement beside the roles of a kernel
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
  %m = pk.block[%zero] : !pk.block<M by 8>
  pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  pk.tasks (%i) in (%n) {
    %r = pk.rank
  }
  pk.role consumer {
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// A role may be restless: the rules of phases are not for it.
// CHECK: pk.kernel @free
pk.kernel @free(%C: !pk.pgl<[M], f32, symmetric> {pk.name = "C"}, %D: !pk.pgl<[M], f32, replicate> {pk.name = "D"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.role communicator {
    %m = pk.block[%zero] : !pk.block<M by 8>
    %x = pk.load %C[%m : !pk.block<M by 8>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<8xf32>
    pk.store_add %x, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, symmetric>
    pk.store %x, %D[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.pgl<[M], f32, replicate>
    pk.tasks (%i) in (%n) {
      pk.barrier %ready[%zero] : !pk.signal<[1]>
    }
  }
}

// -----

// Scratch memory holds nothing at entry.
// CHECK: error[PK409]: scratch array `S` is read but never written
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}, %S: !pk.private<[M], f32> {pk.name = "S", pk.scratch}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %m = pk.block[%i] : !pk.block<M by 8>
    %x = pk.load %S[%m : !pk.block<M by 8>] : !pk.private<[M], f32> -> !pk.tile<8xf32>
    pk.store %x, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// Nobody sees what is written to scratch memory.
// CHECK: error[PK410]: kernel `k` writes nothing
pk.kernel @k(%S: !pk.private<[M], f32> {pk.name = "S", pk.scratch}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%i] : !pk.block<M by 8>
    pk.store %t, %S[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}

// -----

// Tasks in a loop in tasks.
// CHECK: error[PK411]: `tasks` inside a loop inside `tasks`
// CHECK: the outer `tasks`
pk.kernel @k(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    scf.for %k = %zero to %n step %one {
    pk.tasks (%j) in (%n) {
      %h = arith.addi %i, %j : index
        %m = pk.block[%h] : !pk.block<M by 8>
        pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
    }
    }
  }
}

// -----

// Tasks in a loop, and directly in tasks.
// CHECK: pk.kernel @nested
pk.kernel @nested(%C: !pk.private<[M], f32> {pk.name = "C"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  scf.for %k = %zero to %n step %one {
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    pk.tasks (%j) in (%n) {
      %h = arith.addi %i, %j : index
      %m = pk.block[%h] : !pk.block<M by 8>
      pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
    }
  }
  }
}

// -----

// An unused parameter is a warning, which stops nothing.
// CHECK: pk.kernel @unused
pk.kernel @unused(%C: !pk.private<[M], f32> {pk.name = "C"}, %A: !pk.private<[M], f32> {pk.name = "A"}, %s: f32 {pk.name = "s"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 8>
  pk.tasks (%i) in (%n) {
    %t = pk.full 0.0 : f32 : !pk.tile<8xf32>
    %m = pk.block[%i] : !pk.block<M by 8>
    pk.store %t, %C[%m : !pk.block<M by 8>] : !pk.tile<8xf32>, !pk.private<[M], f32>
  }
}
