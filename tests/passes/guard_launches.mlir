// A kernel may be launched again at once: waits count in epochs, ranks enter and leave together.
// RUN: pkc-opt %s -p pk-guard-launches --split-input-file | filecheck %s

// The storer reaches the caller's array on other ranks: it waits until all have entered, and the kernel ends when all
// are done. The loader reads only the local shard, and tells the others that this rank has entered.
// CHECK-LABEL: pk.kernel @push
// CHECK-SAME: %entered: !pk.signal<[1]> {pk.name = "entered"}, %left: !pk.signal<[1]> {pk.name = "left"}
// CHECK: pk.role loader {
// CHECK: pk.signal_all %entered
// CHECK-NOT: pk.wait
// CHECK: pk.role storer {
// CHECK: %[[CTAS:.*]] = pk.ctas loader
// CHECK-NEXT: %[[RANKS:.*]] = pk.dim "ranks"
// CHECK-NEXT: %[[EPOCH:.*]] = pk.epoch
// CHECK-NEXT: %[[ONCE:.*]] = arith.muli %[[CTAS]], %[[RANKS]]
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %[[ONCE]], %[[EPOCH]]
// CHECK: pk.wait %entered{{.*}} for %[[ALL]]
// CHECK: pk.store
// CHECK: pk.signal_all %left
// CHECK: pk.ctas storer
// CHECK: pk.wait %left
pk.kernel @push(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {derived} {
  %c = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %r = pk.rank
  pk.role loader {
    %n = pk.block_count <M by 16> of %r
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] of %r : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role storer {
    %n = pk.block_count <M by 16> of %r
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] of %r : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}

// -----

// Scratch memory of others is written once those that read it are done with the launch before: nobody waits for an
// entry. Its owner awaits what is written, so nobody waits at the end. Waits and raises count in epochs.
// CHECK-LABEL: pk.kernel @slots
// CHECK-SAME: pk.scratch, pk.kept
// CHECK-NOT: entered
// CHECK-NOT: left
// CHECK: pk.ctas communicator
// CHECK: %[[NOW:.*]] = pk.epoch
// CHECK: %[[BEFORE:.*]] = arith.subi %[[NOW]]
// CHECK: %[[TURN:.*]] = arith.remsi %[[BEFORE]]
// CHECK: %[[LAUNCHES:.*]] = arith.divsi %[[NOW]]
// CHECK: %[[EMPTIED:.*]] = arith.muli %{{.*}}, %[[LAUNCHES]]
// CHECK: pk.wait %emptied[%[[TURN]]] for %[[EMPTIED]] {earlier}
// CHECK: pk.store
// CHECK: %[[E:.*]] = pk.epoch
// CHECK-NEXT: %[[V:.*]] = arith.muli %one, %[[E]]
// CHECK-NEXT: pk.raise %done at %{{.*}} to %[[V]]
// CHECK: %[[F:.*]] = pk.epoch
// CHECK-NEXT: %[[W:.*]] = arith.muli %one, %[[F]]
// CHECK-NEXT: pk.wait %done{{.*}} for %[[W]]
// CHECK-NOT: left
// CHECK-NOT: pk.wait %emptied
// CHECK: pk.load %S
// CHECK: %[[E2:.*]] = pk.epoch
// CHECK: %[[T2:.*]] = arith.remsi %[[E2]]
// CHECK: pk.signal_all %emptied[%[[T2]]]
// CHECK-NOT: pk.wait
pk.kernel @slots(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}, %done: !pk.signal<[1]> {pk.name = "done"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  pk.role storer {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
    }
    pk.raise %done at %r[%zero] to %one : !pk.signal<[1]>
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
  }
  pk.role communicator {
    %m = pk.block[%zero] of %r sharded : !pk.block<M by 16>
    %x = pk.load %S[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
  }
}

// -----

// Where the schedule says so they wait until all have entered: no memory is kept.
// CHECK-LABEL: pk.kernel @awaited
// CHECK-NOT: pk.kept
// CHECK-NOT: emptied
// CHECK: pk.signal_all %entered
// CHECK: pk.wait %entered
// CHECK: pk.store
// CHECK-NOT: emptied
// CHECK: pk.load %S
// CHECK-NOT: pk.signal_all
pk.kernel @awaited(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}, %done: !pk.signal<[1]> {pk.name = "done"}) attributes {derived, schedule = {write_ahead = false}} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  pk.role storer {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
    }
    pk.raise %done at %r[%zero] to %one : !pk.signal<[1]>
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
  }
  pk.role communicator {
    %m = pk.block[%zero] of %r sharded : !pk.block<M by 16>
    %x = pk.load %S[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
  }
}

// -----

// Tiles that MMAs make await the entry, which is over when the first is done, unless the schedule says otherwise: the
// signal of who has read costs time at the end of each launch.
// CHECK-LABEL: pk.kernel @behind_mma
// CHECK-NOT: pk.kept
// CHECK-NOT: emptied
// CHECK: pk.signal_all %entered
// CHECK: pk.wait %entered
// CHECK: pk.store
// CHECK-LABEL: pk.kernel @ahead_of_mma
// CHECK-SAME: pk.kept
// CHECK-NOT: entered
// CHECK: pk.wait %emptied
// CHECK: pk.store
pk.kernel @behind_mma(%A: !pk.private<[64, 64], bf16> {pk.name = "A"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}, %done: !pk.signal<[1]> {pk.name = "done"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %c = pk.channel "acc" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role consumer {
    %a = pk.full 0.0 : bf16 : !pk.tile<64x64xbf16>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %sum = pk.mma %a, %a, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %row = pk.row_sum %sum : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    pk.acquire %c : !pk.channel<!pk.tile<64xf32>>
    pk.commit %c, %row : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
  pk.role storer {
    %m = pk.block[%zero] sharded : !pk.block<M by 64>
    %x = pk.consume %c : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.store %x, %S[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.pgl<[M], f32, shard 0>
    pk.release %c : !pk.channel<!pk.tile<64xf32>>
    pk.raise %done at %r[%zero] to %one : !pk.signal<[1]>
  }
  pk.role communicator {
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
    %m = pk.block[%zero] of %r sharded : !pk.block<M by 64>
    %x = pk.load %S[%m : !pk.block<M by 64>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<64xf32>
  }
}
pk.kernel @ahead_of_mma(%A: !pk.private<[64, 64], bf16> {pk.name = "A"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}, %done: !pk.signal<[1]> {pk.name = "done"}) attributes {derived, schedule = {write_ahead = true}} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %c = pk.channel "acc" stages 1 : !pk.channel<!pk.tile<64xf32>>
  pk.role consumer {
    %a = pk.full 0.0 : bf16 : !pk.tile<64x64xbf16>
    %acc = pk.full 0.0 : f32 : !pk.tile<64x64xf32>
    %sum = pk.mma %a, %a, %acc : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    %row = pk.row_sum %sum : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
    pk.acquire %c : !pk.channel<!pk.tile<64xf32>>
    pk.commit %c, %row : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
  pk.role storer {
    %m = pk.block[%zero] sharded : !pk.block<M by 64>
    %x = pk.consume %c : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.store %x, %S[%m : !pk.block<M by 64>] : !pk.tile<64xf32>, !pk.pgl<[M], f32, shard 0>
    pk.release %c : !pk.channel<!pk.tile<64xf32>>
    pk.raise %done at %r[%zero] to %one : !pk.signal<[1]>
  }
  pk.role communicator {
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
    %m = pk.block[%zero] of %r sharded : !pk.block<M by 64>
    %x = pk.load %S[%m : !pk.block<M by 64>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<64xf32>
  }
}

// -----

// Where the roles that read it make the exit wait for them, that is enough; TMA may read on after its role has ended.
// CHECK-LABEL: pk.kernel @sent_on
// CHECK-NOT: entered
// CHECK-NOT: emptied
// CHECK: pk.wait %left
// CHECK-LABEL: pk.kernel @by_tma
// CHECK-NOT: pk.kept
// CHECK: pk.wait %entered
pk.kernel @sent_on(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %r = pk.rank
  pk.role storer {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %x, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
  }
  pk.role communicator attributes {after_all} {
    %m = pk.block[%zero] of %r sharded : !pk.block<M by 16>
    %x = pk.load %S[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}
pk.kernel @by_tma(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}) attributes {derived} {
  %c = pk.channel "S" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %r = pk.rank
  pk.role storer {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %x, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
  }
  pk.role loader {
    %m = pk.block[%zero] of %r sharded : !pk.block<M by 16>
    pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
    %x = pk.load %S[%m : !pk.block<M by 16>] {transfer = {by = "tma", why = ""}} : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
  }
}

// -----

// A role that gets its tiles from one that has waited need not wait; nor one that follows signals from every rank.
// CHECK-LABEL: pk.kernel @led
// CHECK: pk.role loader {
// CHECK: pk.wait %entered
// CHECK: pk.role storer {
// CHECK-NOT: pk.wait %entered
// CHECK: pk.role communicator {{.*}}after_all
// CHECK-NOT: pk.wait %entered
pk.kernel @led(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {derived} {
  %c = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  pk.role loader {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
  }
  pk.role storer {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    pk.release %c : !pk.channel<!pk.tile<16xf32>>
  }
  pk.role communicator attributes {after_all} {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %x = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
  }
}

// -----

// A protocol that the author wrote counts from zero in each launch: nobody signals before all have entered, and when all
// roles of all ranks have left, each rank resets its counters. A role that only waits need not wait for the others.
// CHECK-LABEL: pk.kernel @written
// CHECK-NOT: pk.epoch
// CHECK: pk.role consumer {
// CHECK: pk.signal_all %entered
// CHECK-NOT: pk.wait %entered
// CHECK: pk.wait %done[%zero] for %one
// CHECK: pk.signal_all %left
// CHECK: pk.ctas consumer
// CHECK-NEXT: pk.ctas communicator
// CHECK: pk.wait %left
// CHECK: pk.tasks (%{{.*}}) in (%{{.*}}) attributes {per_cta} {
// CHECK-NEXT: pk.reset %done : !pk.signal<[1]>
// CHECK: pk.role communicator {
// CHECK: pk.wait %entered
// CHECK: pk.signal %done
// CHECK: pk.signal_all %left
// CHECK-NOT: pk.wait
pk.kernel @written(%done: !pk.signal<[1]> {pk.name = "done"}, %unused: !pk.signal<[1]> {pk.name = "unused"}) attributes {derived, written} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %next = pk.ring_peer %one
  pk.role consumer {
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
  }
  pk.role communicator {
    pk.signal %done at %next[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// Copies of a symmetric array on other ranks are reached without a signal too.
// CHECK-LABEL: pk.kernel @reads
// CHECK: pk.signal_all %entered
// CHECK: pk.wait %entered
// CHECK: pk.reduce
// CHECK: pk.wait %left
pk.kernel @reads(%X: !pk.pgl<[M], f32, symmetric> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {derived, written} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.reduce %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// A protocol of one rank by itself needs nothing.
// CHECK-LABEL: pk.kernel @alone
// CHECK-NOT: entered
pk.kernel @alone(%X: !pk.pgl<[M], f32, symmetric> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  pk.role storer {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// Copy engines cannot add to a counter, and begin when their rank's stream comes to the launch: before their first copy
// and after their last each raises a separate counter on every rank, and waits for those of all. No SM tells of an entry.
// CHECK-LABEL: pk.kernel @copied
// CHECK-SAME: %began: !pk.signal<[ranks]> {pk.name = "began"}, %copied: !pk.signal<[ranks]> {pk.name = "copied"}
// CHECK: pk.role copy_engine {
// CHECK-NOT: pk.signal_all
// CHECK: scf.for %[[B:.*]] = %{{.*}} to
// CHECK-NEXT: pk.raise %began at %[[B]][%{{.*}}] to %[[F:.*]] :
// CHECK: scf.for %[[A:.*]] = %{{.*}} to
// CHECK-NEXT: pk.wait %began[%[[A]]] for %[[F]]
// CHECK: pk.copy
// CHECK: scf.for %[[R:.*]] = %{{.*}} to
// CHECK-NEXT: pk.raise %copied at %[[R]][%{{.*}}] to %[[E:.*]] :
// CHECK: scf.for %[[Q:.*]] = %{{.*}} to
// CHECK-NEXT: pk.wait %copied[%[[Q]]] for %[[E]]
// CHECK: pk.role loader {
// CHECK-NOT: entered
// CHECK-NOT: left
pk.kernel @copied(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch}) attributes {derived} {
  %zero = arith.constant 0 : index
  pk.role copy_engine {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.copy %X[%m : !pk.block<M by 16>] along [0] to %L[%m : !pk.block<M by 16>] along [0] : !pk.pgl<[M], f32, shard 0> to !pk.private<[M], f32>
    }
  }
  pk.role loader {
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %x = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
  }
}

// -----

// What first waits for a signal that every rank sends need not wait for their entry, and then nobody tells of it.
// CHECK-LABEL: pk.kernel @zeroed
// CHECK-NOT: entered
// CHECK: pk.role storer {
// CHECK: pk.atomic_add
// CHECK: pk.signal_all %left
// CHECK: pk.wait %left
pk.kernel @zeroed(%O: !pk.pgl<[M], f32, shard 0> {pk.name = "O"}, %zeroed: !pk.signal<[1]> {pk.name = "zeroed"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %m = pk.block[%zero] of %r sharded : !pk.block<M by 16>
  %x = pk.full 0.0 : f32 : !pk.tile<16xf32>
  pk.role storer {
    %ranks = pk.dim "ranks"
    pk.wait %zeroed[%zero] for %ranks : !pk.signal<[1]>
    %n = pk.block[%zero] sharded : !pk.block<M by 16>
    pk.atomic_add %x, %O[%n : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
  }
  pk.role communicator {
    pk.store %x, %O[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
    pk.signal_all %zeroed[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// Scratch memory that other ranks read must outlast their reads.
// CHECK-LABEL: pk.kernel @lent
// CHECK: pk.wait %entered
// CHECK: pk.load %S
// CHECK: pk.signal_all %left
// CHECK: pk.wait %left
pk.kernel @lent(%S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) attributes {derived} {
  pk.role storer {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] sharded : !pk.block<M by 16>
    %x = pk.load %S[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
  }
}

// -----

// What a role gets from others in a later phase says nothing of the first: it waits for the ranks' entry itself.
// CHECK-LABEL: pk.kernel @later
// CHECK: pk.role loader {
// CHECK: pk.wait %entered
// CHECK: pk.role storer {
// CHECK: pk.wait %entered
pk.kernel @later(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {derived} {
  %c = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %one = arith.constant 1 : index
  pk.role loader {
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role storer {
    %z = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.store %z, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    }
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}

// -----

// A wait that is for nothing in some tasks does not stand for the ranks' entry: the storer waits for that itself.
// CHECK-LABEL: pk.kernel @local
// CHECK: pk.role communicator {
// CHECK: pk.wait %entered
// CHECK: pk.role loader {
// CHECK-NOT: pk.wait %entered
// CHECK: pk.wait %ready
// CHECK: pk.role storer {
// CHECK: pk.wait %entered
// CHECK: pk.store
pk.kernel @local(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "L" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %m = pk.block[%zero] sharded : !pk.block<M by 16>
  pk.role communicator {
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    pk.store %x, %L[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    pk.raise %ready at %r[%zero] to %one : !pk.signal<[1]>
  }
  pk.role loader {
    %o = pk.owner %m : !pk.block<M by 16>
    %own = arith.cmpi eq, %o, %r : index
    %n = arith.select %own, %zero, %one : index
    pk.wait %ready[%zero] for %n : !pk.signal<[1]>
    pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
    %x = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
  }
  pk.role storer {
    %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    pk.release %c : !pk.channel<!pk.tile<16xf32>>
  }
}

// -----

// The loader follows what has waited only sometimes: for no signal at all where a condition says so, or in a branch. So
// the storer behind it waits itself.
// CHECK-LABEL: pk.kernel @sometimes
// CHECK: pk.role storer {
// CHECK: pk.wait %entered
// CHECK: pk.store
pk.kernel @sometimes(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %chosen: !pk.signal<[1]> {pk.name = "chosen"}, %branch: !pk.signal<[1]> {pk.name = "branch"}) attributes {derived} {
  %0 = pk.channel "L" stages 1 : !pk.channel<!pk.tile<4xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %own = arith.cmpi eq, %rank, %zero : index
  pk.role communicator {
    %m = pk.block[%zero] sharded : !pk.block<M by 4>
    %x = pk.load %X[%m : !pk.block<M by 4>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<4xf32>
    pk.store %x, %L[%m : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.private<[M], f32>
    pk.signal %chosen at %rank[%zero] by %one : !pk.signal<[1]>
    pk.signal %branch at %rank[%zero] by %one : !pk.signal<[1]>
  }
  pk.role loader {
    %m_1 = pk.block[%zero] sharded : !pk.block<M by 4>
    %needed = arith.select %own, %zero, %one : index
    pk.wait %chosen[%zero] for %needed : !pk.signal<[1]>
    scf.if %own {
      pk.wait %branch[%zero] for %one : !pk.signal<[1]>
    }
    pk.acquire %0 : !pk.channel<!pk.tile<4xf32>>
    %l = pk.load %L[%m_1 : !pk.block<M by 4>] : !pk.private<[M], f32> -> !pk.tile<4xf32>
    pk.commit %0, %l : !pk.channel<!pk.tile<4xf32>>, !pk.tile<4xf32>
  }
  pk.role storer {
    %m_2 = pk.block[%zero] sharded : !pk.block<M by 4>
    %t = pk.consume %0 : !pk.channel<!pk.tile<4xf32>> -> !pk.tile<4xf32>
    pk.store %t, %Y[%m_2 : !pk.block<M by 4>] : !pk.tile<4xf32>, !pk.pgl<[M], f32, replicate>
    pk.release %0 : !pk.channel<!pk.tile<4xf32>>
  }
}

// -----

// What follows another phase of all ranks follows their entry: then nobody tells of it. A signal from tasks says nothing
// of ranks that have none.
// CHECK-LABEL: pk.kernel @phases
// CHECK-NOT: entered
// CHECK: pk.signal_all %over
// CHECK-LABEL: pk.kernel @from_tasks
// CHECK: pk.wait %entered
pk.kernel @phases(%P: !pk.pgl<[M], f32, symmetric> {pk.name = "P", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %over: !pk.signal<[1]> {pk.name = "over"}) attributes {derived} {
  %c = pk.channel "P" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %ranks = pk.dim "ranks"
  %n = pk.block_count <M by 16>
  pk.role loader {
    pk.wait %over[%zero] for %ranks : !pk.signal<[1]>
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 16>
      scf.for %j = %zero to %ranks step %one {
        %peer = pk.ring_peer %j
        pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
        %x = pk.load %P at %peer[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, symmetric> -> !pk.tile<16xf32>
        pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
      }
    }
  }
  pk.role storer {
    %z = pk.full 0.0 : f32 : !pk.tile<16xf32>
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.store %z, %P[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, symmetric>
    }
    pk.signal_all %over[%zero] by %one : !pk.signal<[1]>
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 16>
      scf.for %j = %zero to %ranks step %one {
        %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
        pk.release %c : !pk.channel<!pk.tile<16xf32>>
      }
      pk.store %z, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    }
  }
}
pk.kernel @from_tasks(%Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %over: !pk.signal<[1]> {pk.name = "over"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %n = pk.block_count <M by 16> of %r sharded
  %all = pk.block_count <M by 16> sharded
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta, phase = 0} {
      pk.signal_all %over[%zero] by %one : !pk.signal<[1]>
    }
    pk.wait %over[%zero] for %all : !pk.signal<[1]>
    pk.tasks (%i) in (%one) attributes {per_cta, phase = 1} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %z = pk.full 0.0 : f32 : !pk.tile<16xf32>
      pk.store %z, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    }
  }
}

// -----

// The loader does not wait for blocks of its own rank, but those are stored on this rank: the storer need not wait. For
// another block of the task it must.
// CHECK-LABEL: pk.kernel @own
// CHECK: pk.role storer {
// CHECK-NOT: pk.wait %entered
// CHECK-LABEL: pk.kernel @other
// CHECK: pk.role storer {
// CHECK: pk.wait %entered
pk.kernel @own(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch}, %Y: !pk.pgl<[M], f32, shard 0> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "L" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %n = pk.block_count <M by 16> sharded
  pk.role communicator {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
      pk.store %x, %L[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      pk.raise %ready at %r[%i] to %one : !pk.signal<[M by 16]>
    }
  }
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %j = pk.rotate %i by %one of %n
      %m = pk.block[%j] sharded : !pk.block<M by 16>
      %o = pk.owner %m : !pk.block<M by 16>
      %own = arith.cmpi eq, %o, %r : index
      %needed = arith.select %own, %zero, %one : index
      pk.wait %ready[%j] for %needed : !pk.signal<[M by 16]>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %j = pk.rotate %i by %one of %n
      %m = pk.block[%j] sharded : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}
pk.kernel @other(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch}, %Y: !pk.pgl<[M], f32, shard 0> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "L" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %n = pk.block_count <M by 16> sharded
  pk.role communicator {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
      pk.store %x, %L[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      pk.raise %ready at %r[%i] to %one : !pk.signal<[M by 16]>
    }
  }
  pk.role loader {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %o = pk.owner %m : !pk.block<M by 16>
      %own = arith.cmpi eq, %o, %r : index
      %needed = arith.select %own, %zero, %one : index
      pk.wait %ready[%i] for %needed : !pk.signal<[M by 16]>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %j = pk.rotate %i by %one of %n
      %m = pk.block[%j] sharded : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
    }
  }
}

// -----

// Of signals that each CTA sends after its tasks, all of which are awaited, one is enough that had a task which waited.
// CHECK-LABEL: pk.kernel @whole
// CHECK: pk.role communicator {
// CHECK: pk.wait %entered
// CHECK: pk.role storer {
// CHECK-NOT: pk.wait %entered
pk.kernel @whole(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M], f32> {pk.name = "L", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {derived} {
  %a = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %n = pk.block_count <M by 16> sharded
  %ctas = pk.ctas communicator
  pk.role communicator {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.acquire %a : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
      pk.commit %a, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
  }
  pk.role communicator {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.consume %a : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %L[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      pk.release %a : !pk.channel<!pk.tile<16xf32>>
    }
    pk.signal %ready at %r[%zero] by %one : !pk.signal<[1]>
  }
  pk.role storer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      pk.wait %ready[%zero] for %ctas : !pk.signal<[1]>
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %x = pk.load %L[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    }
  }
}

// -----

// Packets go to one of two halves of scratch memory: nobody waits to begin, and one CTA awaits, before the launch ends,
// that all ranks have entered it. Their signals count half of the launches.
// CHECK-LABEL: pk.kernel @packets
// CHECK-SAME: pk.scratch, pk.packets, pk.kept
// CHECK-SAME: %entered: !pk.signal<[1]>
// CHECK-NOT: emptied
// CHECK-NOT: left
// CHECK: pk.role communicator {
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1
// CHECK-NEXT: pk.tasks (%{{.*}}) in (%[[ONE]]) attributes {per_cta} {
// CHECK: pk.signal_all %entered
// CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %{{.*}} : index
// CHECK-NEXT: %[[LAUNCHES:.*]] = arith.divsi %[[NEXT]]
// CHECK-NEXT: %[[WANTED:.*]] = arith.muli %{{.*}}, %[[LAUNCHES]]
// CHECK-NEXT: pk.wait %arrived[%{{.*}}] for %[[WANTED]]
// CHECK: pk.role storer {
// CHECK-NOT: pk.wait
// CHECK: pk.store
// CHECK: pk.tasks (%{{.*}}) in (%{{.*}}) attributes {per_cta} {
// CHECK: pk.dim "ranks"
// CHECK: pk.wait %entered
pk.kernel @packets(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}, %slots: !pk.pgl<[2, ranks, M], bf16, replicate> {pk.name = "slots", pk.scratch, pk.packets}, %arrived: !pk.signal<[2]> {pk.name = "arrived", pk.packets}) attributes {derived} {
  pk.role communicator {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %ranks = pk.dim "ranks"
    %e = pk.epoch
    %two = arith.constant 2 : index
    %half = arith.remsi %e, %two : index
    pk.wait %arrived[%half] for %ranks : !pk.signal<[2]>
    %m = pk.block[%zero] : !pk.block<M by 16>
    %t = pk.load %slots[%half, %zero, %m : index, index, !pk.block<M by 16>] : !pk.pgl<[2, ranks, M], bf16, replicate> -> !pk.tile<16xbf16>
    pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
  }
  pk.role storer {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %e = pk.epoch
    %two = arith.constant 2 : index
    %half = arith.remsi %e, %two : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
    pk.store %x, %slots[%half, %r, %m : index, index, !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.pgl<[2, ranks, M], bf16, replicate>
    pk.signal_all %arrived[%half] by %one : !pk.signal<[2]>
  }
}

// -----

// The end of a phase on all ranks tells the same.
// CHECK-LABEL: pk.kernel @packets_and_phases
// CHECK-NOT: entered
pk.kernel @packets_and_phases(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Z: !pk.pgl<[M], bf16, symmetric> {pk.name = "Z", pk.scratch}, %slots: !pk.pgl<[2, ranks, M], bf16, replicate> {pk.name = "slots", pk.scratch, pk.packets}, %arrived: !pk.signal<[2]> {pk.name = "arrived", pk.packets}, %over: !pk.signal<[1]> {pk.name = "over"}) attributes {derived} {
  pk.role loader {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    pk.signal_all %over[%zero] by %one : !pk.signal<[1]>
    pk.wait %over[%zero] for %ranks : !pk.signal<[1]>
  }
  pk.role storer {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %e = pk.epoch
    %two = arith.constant 2 : index
    %half = arith.remsi %e, %two : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
    pk.store %x, %slots[%half, %r, %m : index, index, !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.pgl<[2, ranks, M], bf16, replicate>
    pk.signal_all %arrived[%half] by %one : !pk.signal<[2]>
  }
}

// -----

// So does the exit of all ranks, which follows a read of their memory.
// CHECK-LABEL: pk.kernel @packets_and_exit
// CHECK-NOT: entered
// CHECK: pk.wait %left
pk.kernel @packets_and_exit(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Z: !pk.pgl<[M], bf16, symmetric> {pk.name = "Z", pk.scratch}, %slots: !pk.pgl<[2, ranks, M], bf16, replicate> {pk.name = "slots", pk.scratch, pk.packets}, %arrived: !pk.signal<[2]> {pk.name = "arrived", pk.packets}, %over: !pk.signal<[1]> {pk.name = "over"}) attributes {derived} {
  pk.role loader {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    pk.signal_all %over[%zero] by %one : !pk.signal<[1]>
    pk.tasks (%i) in (%one) attributes {per_cta} {
      pk.wait %over[%zero] for %ranks : !pk.signal<[1]>
      %m = pk.block[%zero] : !pk.block<M by 16>
      %t = pk.load %Z at %i[%m : !pk.block<M by 16>] : !pk.pgl<[M], bf16, symmetric> -> !pk.tile<16xbf16>
      pk.store %t, %X[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
    }
  }
  pk.role storer {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %e = pk.epoch
    %two = arith.constant 2 : index
    %half = arith.remsi %e, %two : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
    pk.store %x, %slots[%half, %r, %m : index, index, !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.pgl<[2, ranks, M], bf16, replicate>
    pk.signal_all %arrived[%half] by %one : !pk.signal<[2]>
  }
}

// -----

// What no other rank reaches may lie anywhere in its rank's memory: not what one rank stores on all, and not scratch
// memory, which pkc allocates.
// CHECK-LABEL: pk.kernel @local
// CHECK-SAME: %X: !pk.pgl<[M], f32, shard 0> {pk.name = "X", pk.local}
// CHECK-SAME: %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}
// CHECK-SAME: %Z: !pk.pgl<[M], f32, shard 0> {pk.name = "Z"}
// CHECK-SAME: %R: !pk.pgl<[M], f32, replicate> {pk.name = "R", pk.local}
// CHECK-SAME: %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}
pk.kernel @local(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %Z: !pk.pgl<[M], f32, shard 0> {pk.name = "Z"}, %R: !pk.pgl<[M], f32, replicate> {pk.name = "R"}, %S: !pk.pgl<[M], f32, shard 0> {pk.name = "S", pk.scratch}) attributes {derived} {
  pk.role storer {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] of %r : !pk.block<M by 16>
    %any = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    %z = pk.load %Z[%any : !pk.block<M by 16>] : !pk.pgl<[M], f32, shard 0> -> !pk.tile<16xf32>
    %w = pk.load %R[%any : !pk.block<M by 16>] : !pk.pgl<[M], f32, replicate> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    pk.store %z, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
    pk.store %w, %S[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, shard 0>
  }
}

// -----

// Copy engines know arrays of the symmetric heap alone.
// CHECK-LABEL: pk.kernel @copied_here
// CHECK-NOT: pk.local
pk.kernel @copied_here(%X: !pk.pgl<[M], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}) attributes {derived} {
  pk.role copy_engine {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] of %r : !pk.block<M by 16>
    pk.copy %X[%m : !pk.block<M by 16>] along [0] to %Y[%m : !pk.block<M by 16>] along [0] : !pk.pgl<[M], f32, shard 0> to !pk.pgl<[M], f32, replicate>
  }
}

// -----

// The consumer, which the storer gets its tiles from, reaches all ranks only behind signals that each rank sends once all
// have entered: so the storer waits, while the tiles are made, and not the consumer, before it makes any. It does not
// matter which rank sends.
// CHECK-LABEL: pk.kernel @behind_signals_of_others
// CHECK: pk.role consumer
// CHECK: pk.signal_all %entered
// CHECK-NOT: pk.wait %entered
// CHECK: pk.role storer
// CHECK: pk.wait %entered
// CHECK: pk.store
pk.kernel @behind_signals_of_others(%X: !pk.private<[M], f32> {pk.name = "X"}, %S: !pk.pgl<[ranks, M], f32, shard 1> {pk.name = "S", pk.scratch}, %Y: !pk.pgl<[M], f32, replicate> {pk.name = "Y"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {derived, schedule = {write_ahead = false}} {
  %c = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %ranks = pk.dim "ranks"
  pk.role consumer {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16xf32>>
      %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.commit %c, %x : !pk.channel<!pk.tile<16xf32>>, !pk.tile<16xf32>
    }
    %own = pk.block_count <M by 16> of %r sharded
    pk.tasks (%i) in (%own) attributes {per_cta} {
      %m = pk.block[%i] of %r sharded : !pk.block<M by 16>
      %at = pk.block_number %m : !pk.block<M by 16>
      pk.wait %arrived[%at] for %ranks : !pk.signal<[M by 16]>
      %x = pk.load %S[%zero, %m : index, !pk.block<M by 16>] : !pk.pgl<[ranks, M], f32, shard 1> -> !pk.tile<16xf32>
      pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, replicate>
    }
  }
  pk.role storer {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %owner = pk.owner %m : !pk.block<M by 16>
      %at = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16xf32>> -> !pk.tile<16xf32>
      pk.store %x, %S[%r, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[ranks, M], f32, shard 1>
      pk.release %c : !pk.channel<!pk.tile<16xf32>>
      pk.signal %arrived at %owner[%at] by %one : !pk.signal<[M by 16]>
    }
  }
}
