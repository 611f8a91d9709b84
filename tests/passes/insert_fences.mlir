// What each signal, wait and channel needs, so that what follows sees what came before.
// RUN: pkc-opt %s -p pk-plan-transfers,pk-insert-fences --split-input-file | filecheck %s

// A copy: acquire and async fence once, in front of the loop; stores complete before the signal to this rank, which is
// of this GPU's scope, and so is the wait for it.
// CHECK-LABEL: pk.kernel @copy
// CHECK-SAME: fenced
// CHECK: pk.role communicator {
// CHECK: pk.signal_all %entered{{.*}} {order = "release_sys"}
// CHECK-NEXT: pk.wait %entered
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: pk.fence async_global
// CHECK: scf.for
// CHECK-NOT: pk.fence
// CHECK-NOT: pk.drain
// CHECK: pk.store
// CHECK-NEXT: }
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: pk.raise %ready{{.*}} {order = "release_gpu"}
// CHECK-NEXT: pk.signal_all %left{{.*}} {order = "release_sys"}
// CHECK-NEXT: pk.wait %left
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: }
// CHECK: pk.role loader {
// CHECK: pk.wait %ready
// CHECK-NEXT: pk.fence acquire_gpu
// CHECK-NEXT: pk.fence async_global
// CHECK: pk.load
// CHECK-NEXT: pk.commit
// CHECK-NEXT: }
// CHECK: pk.role consumer {
// CHECK: pk.neg
// CHECK-NEXT: pk.fence async_shared
// CHECK-NEXT: pk.commit
// CHECK: pk.role storer {
// CHECK: pk.store
// CHECK-NEXT: pk.drain read
// CHECK-NEXT: pk.release
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: }
pk.kernel @copy(%A: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "A"}, %L: !pk.private<[M, 64], f32> {pk.name = "L", pk.scratch}, %C: !pk.private<[M, 64], f32> {pk.name = "C"}, %ready: !pk.signal<[1]> {pk.name = "ready"}, %entered: !pk.signal<[1]> {pk.name = "entered"}, %left: !pk.signal<[1]> {pk.name = "left"}) attributes {derived} {
  %0 = pk.channel "L" stages 1 : !pk.channel<!pk.tile<16x64xf32>>
  %1 = pk.channel "neg" stages 1 : !pk.channel<!pk.tile<16x64xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 16> sharded
  pk.role communicator {
    %rank = pk.rank
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
    pk.wait %entered[%zero] for %one : !pk.signal<[1]>
    scf.for %i = %zero to %n step %one {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, shard 0> -> !pk.tile<16x64xf32>
      pk.store %a, %L[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    }
    pk.raise %ready at %rank[%zero] to %one : !pk.signal<[1]>
    pk.signal_all %left[%zero] by %one : !pk.signal<[1]>
    pk.wait %left[%zero] for %one : !pk.signal<[1]>
  }
  pk.role loader {
    %m_1 = pk.block[%zero] sharded : !pk.block<M by 16>
    %d_1 = pk.block[%zero] : !pk.block<64 by 64>
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
    %b = pk.load %L[%m_1, %d_1 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    pk.commit %0, %b : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
  }
  pk.role consumer {
    %x = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
    pk.acquire %1 : !pk.channel<!pk.tile<16x64xf32>>
    %y = pk.neg %x : !pk.tile<16x64xf32>
    pk.commit %1, %y : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
    pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
  }
  pk.role storer {
    %m_2 = pk.block[%zero] sharded : !pk.block<M by 16>
    %d_2 = pk.block[%zero] : !pk.block<64 by 64>
    %t = pk.consume %1 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
    pk.store %t, %C[%m_2, %d_2 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    pk.release %1 : !pk.channel<!pk.tile<16x64xf32>>
  }
}

// -----

// Ordinary loads and stores: the release and the acquire suffice. Waits in a row have one fence, of the widest scope.
// CHECK-LABEL: pk.kernel @registers
// CHECK: pk.wait %own
// CHECK-NEXT: pk.rank
// CHECK-NEXT: pk.wait %arrived
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: pk.load
// CHECK-NEXT: pk.neg
// CHECK-NEXT: pk.store
// CHECK-NEXT: pk.raise %own{{.*}} {order = "release_gpu"}
// CHECK-NEXT: pk.signal %arrived{{.*}} {order = "release_sys"}
// CHECK-NEXT: }
pk.kernel @registers(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %own: !pk.signal<[1]> {pk.name = "own"}, %arrived: !pk.signal<[1]> {pk.name = "arrived"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role communicator {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.wait %own[%zero] for %one : !pk.signal<[1]>
    %rank = pk.rank
    pk.wait %arrived[%zero] for %one : !pk.signal<[1]>
    %x = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    %y = pk.neg %x : !pk.tile<16x64xf32>
    pk.store %y, %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    pk.raise %own at %rank[%zero] to %one : !pk.signal<[1]>
    pk.signal %arrived at %one[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// Loads from another rank have arrived before this rank says that it is done. What a loader has acquired serves the
// storer that it feeds: its stores go to other ranks. A stage that TMA has filled needs no fence for TMA.
// CHECK-LABEL: pk.kernel @through
// CHECK: pk.role loader {
// CHECK: pk.wait %entered
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: pk.fence async_global
// CHECK: pk.load
// CHECK-NEXT: pk.commit
// CHECK-NEXT: }
// CHECK-NEXT: pk.drain loads
// CHECK-NEXT: pk.signal_all %left
// CHECK-NEXT: pk.wait %left
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: }
// CHECK: pk.role storer {
// CHECK: pk.store
// CHECK-NEXT: pk.drain read
// CHECK-NEXT: pk.release
// CHECK-NEXT: }
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: pk.signal_all %left
pk.kernel @through(%X: !pk.pgl<[M, 64], f32, shard 0> {pk.name = "X"}, %Y: !pk.pgl<[M, 64], f32, replicate> {pk.name = "Y"}, %entered: !pk.signal<[1]> {pk.name = "entered"}, %left: !pk.signal<[1]> {pk.name = "left"}) attributes {derived} {
  %0 = pk.channel "X" stages 2 : !pk.channel<!pk.tile<16x64xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = pk.block_count <M by 16> sharded
  pk.role loader {
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
    pk.wait %entered[%zero] for %one : !pk.signal<[1]>
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
      %a = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, shard 0> -> !pk.tile<16x64xf32>
      pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
    }
    pk.signal_all %left[%zero] by %one : !pk.signal<[1]>
    pk.wait %left[%zero] for %one : !pk.signal<[1]>
  }
  pk.role storer {
    %d_1 = pk.block[%zero] : !pk.block<64 by 64>
    pk.tasks (%i_1) in (%n) attributes {per_cta} {
      %m_1 = pk.block[%i_1] sharded : !pk.block<M by 16>
      %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
      pk.store %t, %Y[%m_1, %d_1 : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.pgl<[M, 64], f32, replicate>
      pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
    }
    pk.signal_all %left[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// wgmma reads both operands of an MMA from shared memory through the async proxy, its accumulator it does not.
// CHECK-LABEL: pk.kernel @operands
// CHECK: pk.fence async_shared
// CHECK-NEXT: pk.commit %[[OPERANDS:.*]], %a, %b
// CHECK-NOT: pk.fence
// CHECK: pk.commit %{{.*}}, %sum
pk.kernel @operands(%X: !pk.private<[64, 64], f32> {pk.name = "X"}) attributes {derived} {
  %0 = pk.channel "a, b" stages 1 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
  %1 = pk.channel "sum" stages 1 : !pk.channel<!pk.tile<64x64xf32>>
  pk.role loader {
    pk.acquire %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    %a = pk.full 1.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    %b = pk.full 2.000000e+00 : bf16 : !pk.tile<64x64xbf16>
    pk.commit %0, %a, %b : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>, !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>
    pk.acquire %1 : !pk.channel<!pk.tile<64x64xf32>>
    %sum = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
    pk.commit %1, %sum : !pk.channel<!pk.tile<64x64xf32>>, !pk.tile<64x64xf32>
  }
  pk.role consumer {
    %zero = arith.constant 0 : index
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %x, %y = pk.consume %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>
    %z = pk.consume %1 : !pk.channel<!pk.tile<64x64xf32>> -> !pk.tile<64x64xf32>
    %t = pk.transpose %y : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
    %p = pk.mma %x, %t, %z : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
    pk.release %0 : !pk.channel<!pk.tile<64x64xbf16>, !pk.tile<64x64xbf16>>
    pk.release %1 : !pk.channel<!pk.tile<64x64xf32>>
    pk.store %p, %X[%d, %d : !pk.block<64 by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.private<[64, 64], f32>
  }
}

// -----

// A store in one branch, or at the end of the iteration before, is as good as one for sure.
// CHECK-LABEL: pk.kernel @perhaps
// CHECK: scf.for
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: pk.raise %ready
// CHECK: scf.if
// CHECK: pk.store
// CHECK-NEXT: }
// CHECK-NEXT: }
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: }
pk.kernel @perhaps(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {derived} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <M by 16>
    %rank = pk.rank
    %d = pk.block[%zero] : !pk.block<64 by 64>
    scf.for %i = %zero to %n step %one {
      pk.raise %ready at %rank[%zero] to %i : !pk.signal<[1]>
      %some = arith.cmpi eq, %i, %one : index
      scf.if %some {
        %m = pk.block[%i] : !pk.block<M by 16>
        %x = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
        pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
      }
    }
  }
}

// -----

// A copy engine's stream orders what it does; its signals reach the SMs of this rank like those of another agent, and
// what it has copied is behind another proxy.
// CHECK-LABEL: pk.kernel @copied
// CHECK: pk.role copy_engine
// CHECK: pk.wait %entered
// CHECK-NOT: pk.fence
// CHECK: pk.copy
// CHECK-NEXT: pk.raise %ready at %{{.*}} {order = "release_sys"}
// CHECK: pk.role loader
// CHECK: pk.wait %ready
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: pk.fence async_global
// CHECK: pk.load %L
pk.kernel @copied(%X: !pk.pgl<[M, 16], f32, shard 0> {pk.name = "X"}, %L: !pk.private<[M, 16], f32> {pk.name = "L", pk.scratch}, %ready: !pk.signal<[1]> {pk.name = "ready"}, %entered: !pk.signal<[1]> {pk.name = "entered"}) attributes {derived} {
  %c = pk.channel "L" stages 1 : !pk.channel<!pk.tile<16x16xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %m = pk.block[%zero] sharded : !pk.block<M by 16>
  %k = pk.block[%zero] : !pk.block<16 by 16>
  pk.role copy_engine {
    pk.wait %entered[%zero] for %one : !pk.signal<[1]>
    pk.copy %X[%m, %k : !pk.block<M by 16>, !pk.block<16 by 16>] along [0, 1] to %L[%m, %k : !pk.block<M by 16>, !pk.block<16 by 16>] along [0, 1] : !pk.pgl<[M, 16], f32, shard 0> to !pk.private<[M, 16], f32>
    pk.raise %ready at %r[%zero] to %one : !pk.signal<[1]>
  }
  pk.role loader {
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
    pk.acquire %c : !pk.channel<!pk.tile<16x16xf32>>
    %x = pk.load %L[%m, %k : !pk.block<M by 16>, !pk.block<16 by 16>] {transfer = {by = "tma", why = ""}} : !pk.private<[M, 16], f32> -> !pk.tile<16x16xf32>
    pk.commit %c, %x : !pk.channel<!pk.tile<16x16xf32>>, !pk.tile<16x16xf32>
  }
}

// -----

// One drain serves the signals to all ranks, and the end of the role.
// CHECK-LABEL: pk.kernel @several
// CHECK: pk.store
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: scf.for
// CHECK-NOT: pk.drain
// CHECK: pk.raise
// CHECK-NOT: pk.drain
pk.kernel @several(%X: !pk.private<[M, 64], f32> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}) attributes {derived} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    scf.for %r = %zero to %ranks step %one {
      pk.raise %ready at %r[%zero] to %one : !pk.signal<[1]>
    }
  }
}

// -----

// A copy engine is another agent than the SMs of its rank: what it awaits is released to all.
// CHECK-LABEL: pk.kernel @sent
// CHECK: pk.role copy_engine
// CHECK: pk.wait %computed
// CHECK-NEXT: pk.copy
// CHECK: pk.role storer
// CHECK: pk.raise %computed at %{{.*}} {order = "release_sys"}
// CHECK: pk.raise %other at %{{.*}} {order = "release_gpu"}
pk.kernel @sent(%S: !pk.private<[M, 64], f32> {pk.name = "S", pk.scratch}, %Y: !pk.pgl<[M, 64], f32, replicate> {pk.name = "Y"}, %computed: !pk.signal<[1]> {pk.name = "computed"}, %other: !pk.signal<[1]> {pk.name = "other"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  %m = pk.block[%zero] : !pk.block<M by 16>
  pk.role copy_engine {
    pk.wait %computed[%zero] for %one : !pk.signal<[1]>
    pk.copy %S[%m : !pk.block<M by 16>] along [0] to %Y[%m : !pk.block<M by 16>] along [0] : !pk.private<[M, 64], f32> to !pk.pgl<[M, 64], f32, replicate>
  }
  pk.role storer {
    pk.raise %computed at %r[%zero] to %one : !pk.signal<[1]>
    pk.raise %other at %r[%zero] to %one : !pk.signal<[1]>
  }
}

// -----

// Of additions of two scopes to one counter one may be lost: where other ranks signal it, so does this one, to all.
// CHECK-LABEL: pk.kernel @mixed
// CHECK: pk.signal %own at %{{.*}} {order = "release_gpu"}
// CHECK: pk.signal %arrived at %{{.*}} {order = "release_sys"}
// CHECK: pk.signal %arrived at %{{.*}} {order = "release_sys"}
pk.kernel @mixed(%own: !pk.signal<[1]> {pk.name = "own"}, %arrived: !pk.signal<[1]> {pk.name = "arrived"}) attributes {derived} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %r = pk.rank
  pk.role communicator {
    pk.signal %own at %r[%zero] by %one : !pk.signal<[1]>
    pk.signal %arrived at %r[%zero] by %one : !pk.signal<[1]>
    pk.signal %arrived at %zero[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// A signal in packets releases nothing, and nothing is acquired behind its wait; others are as ever.
// CHECK-LABEL: pk.kernel @packets
// CHECK: pk.wait %arrived
// CHECK-NEXT: pk.block
// CHECK-NEXT: pk.load
// CHECK: pk.wait %entered
// CHECK-NEXT: pk.fence acquire_sys
// CHECK: pk.signal_all %entered{{.*}} {order = "release_sys"}
// CHECK: pk.store {{.*}}, %slots
// CHECK-NEXT: pk.signal_all %arrived{{.*}} {order = "in_packets"}
pk.kernel @packets(%X: !pk.private<[M], bf16> {pk.name = "X"}, %Y: !pk.private<[M], bf16> {pk.name = "Y"}, %slots: !pk.pgl<[2, ranks, M], bf16, replicate> {pk.name = "slots", pk.scratch, pk.packets}, %arrived: !pk.signal<[2]> {pk.name = "arrived", pk.packets}, %entered: !pk.signal<[1]> {pk.name = "entered"}) attributes {derived} {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %ranks = pk.dim "ranks"
    pk.wait %arrived[%zero] for %ranks : !pk.signal<[2]>
    %m = pk.block[%zero] : !pk.block<M by 16>
    %t = pk.load %slots[%zero, %zero, %m : index, index, !pk.block<M by 16>] : !pk.pgl<[2, ranks, M], bf16, replicate> -> !pk.tile<16xbf16>
    pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
    pk.wait %entered[%zero] for %ranks : !pk.signal<[1]>
    pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.private<[M], bf16>
  }
  pk.role storer {
    %r = pk.rank
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
    %m = pk.block[%zero] : !pk.block<M by 16>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], bf16> -> !pk.tile<16xbf16>
    pk.store %x, %slots[%zero, %r, %m : index, index, !pk.block<M by 16>] : !pk.tile<16xbf16>, !pk.pgl<[2, ranks, M], bf16, replicate>
    pk.signal_all %arrived[%zero] by %one : !pk.signal<[2]>
  }
}

// -----

// A wait needs no fence to the async proxy for what follows another one, which has it.
// CHECK-LABEL: pk.kernel @again
// CHECK: pk.wait %ready
// CHECK-NEXT: pk.fence acquire_gpu
// CHECK-NOT: pk.fence async_global
// CHECK: pk.wait %over
// CHECK-NEXT: pk.fence acquire_gpu
// CHECK-NEXT: pk.fence async_global
pk.kernel @again(%L: !pk.private<[M, 64], f32> {pk.name = "L", pk.scratch}, %A: !pk.private<[M, 64], f32> {pk.name = "A", pk.scratch}, %X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}, %ready: !pk.signal<[1]> {pk.name = "ready"}, %over: !pk.signal<[1]> {pk.name = "over"}) attributes {derived} {
  %0 = pk.channel "L" stages 1 : !pk.channel<!pk.tile<16x64xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role loader {
    %m = pk.block[%zero] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
    %x = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
    pk.store %x, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    pk.wait %over[%zero] for %one : !pk.signal<[1]>
    pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
    %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
    pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
  }
  pk.role storer {
    %rank = pk.rank
    %m = pk.block[%zero] : !pk.block<M by 16>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.signal %ready at %rank[%zero] by %one : !pk.signal<[1]>
    %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
    pk.store %t, %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
    pk.signal %over at %rank[%zero] by %one : !pk.signal<[1]>
    pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
  }
}

// -----

// Two stores by TMA to one place: the second waits until the first is complete. Other tasks store elsewhere.
// CHECK-LABEL: pk.kernel @twice
// CHECK: pk.tasks
// CHECK-NOT: pk.drain full
// CHECK: pk.store
// CHECK: pk.drain full
// CHECK-NEXT: pk.store
// CHECK-NOT: pk.drain full
// CHECK: pk.store %{{.*}}, %Z
pk.kernel @twice(%A: !pk.private<[M, 64], f32> {pk.name = "A"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %Z: !pk.private<[M, 64], f32> {pk.name = "Z"}) attributes {derived} {
  %0 = pk.channel "A" stages 1 : !pk.channel<!pk.tile<16x64xf32>>
  %count = pk.block_count <M by 16>
  %zero = arith.constant 0 : index
  pk.role loader {
    pk.tasks (%i) in (%count) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
      %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
      pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%count) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
      pk.store %t, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
      pk.store %t, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
      pk.store %t, %Z[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
      pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
    }
  }
}

// -----

// What each iteration stores to one place waits for the iteration before.
// CHECK-LABEL: pk.kernel @kept
// CHECK: scf.for
// CHECK: pk.drain full
// CHECK-NEXT: pk.store
pk.kernel @kept(%A: !pk.private<[M, 64], f32> {pk.name = "A"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}) attributes {derived} {
  %0 = pk.channel "A" stages 1 : !pk.channel<!pk.tile<16x64xf32>>
  %count = pk.block_count <M by 16>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role loader {
    scf.for %i = %zero to %count step %one {
      %m = pk.block[%i] : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<16x64xf32>>
      %a = pk.load %A[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.private<[M, 64], f32> -> !pk.tile<16x64xf32>
      pk.commit %0, %a : !pk.channel<!pk.tile<16x64xf32>>, !pk.tile<16x64xf32>
    }
  }
  pk.role storer {
    scf.for %i = %zero to %count step %one {
      %m = pk.block[%zero] : !pk.block<M by 16>
      %d = pk.block[%zero] : !pk.block<64 by 64>
      %t = pk.consume %0 : !pk.channel<!pk.tile<16x64xf32>> -> !pk.tile<16x64xf32>
      pk.store %t, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] : !pk.tile<16x64xf32>, !pk.private<[M, 64], f32>
      pk.release %0 : !pk.channel<!pk.tile<16x64xf32>>
    }
  }
}

// -----

// What a tile is stored to by TMA, behind waits of the role that stores it, follows the wait of the role that loads it.
// CHECK-LABEL: pk.kernel @handed
// CHECK: pk.wait %turn
// CHECK-NEXT: pk.fence acquire_sys
// CHECK-NEXT: pk.fence async_global
// CHECK: pk.wait %entered
// CHECK-NEXT: pk.fence acquire_sys
pk.kernel @handed(%A: !pk.private<[64], f32> {pk.name = "A"}, %G: !pk.pgl<[64], f32, symmetric> {pk.name = "G"}, %turn: !pk.signal<[1]> {pk.name = "turn"}, %entered: !pk.signal<[1]> {pk.name = "entered"}) attributes {derived} {
  %0 = pk.channel "A" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  pk.role loader {
    pk.wait %turn[%zero] for %one : !pk.signal<[1]>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
    %a = pk.load %A[%d : !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64], f32> -> !pk.tile<64xf32>
    pk.commit %0, %a : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
  pk.role storer {
    pk.wait %entered[%zero] for %one : !pk.signal<[1]>
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %t = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.store %t, %G at %zero[%d : !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64xf32>, !pk.pgl<[64], f32, symmetric>
    pk.release %0 : !pk.channel<!pk.tile<64xf32>>
    pk.signal %turn at %zero[%zero] by %one : !pk.signal<[1]>
    pk.signal %entered at %zero[%zero] by %one : !pk.signal<[1]>
  }
}

// -----

// What threads have asked for may come later than they arrive: a fence before TMA may fill the stage again. One serves
// several releases; a stage that threads fill, and one that a TMA store reads, need none.
// CHECK-LABEL: pk.kernel @reads
// CHECK: pk.role consumer
// CHECK: pk.exp
// CHECK-NEXT: pk.fence async_shared
// CHECK-NEXT: pk.release %0
// CHECK-NEXT: pk.release %1
// CHECK-NEXT: pk.fence async_shared
// CHECK-NEXT: pk.commit %2
// CHECK: pk.role storer
// CHECK-NOT: pk.fence
// CHECK: pk.release %2
pk.kernel @reads(%A: !pk.private<[64], f32> {pk.name = "A"}, %B: !pk.private<[64], f32> {pk.name = "B"}) attributes {derived} {
  %0 = pk.channel "A" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %1 = pk.channel "A2" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %2 = pk.channel "B" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %zero = arith.constant 0 : index
  pk.role loader {
    %d = pk.block[%zero] : !pk.block<64 by 64>
    pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
    %a = pk.load %A[%d : !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64], f32> -> !pk.tile<64xf32>
    pk.commit %0, %a : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    pk.acquire %1 : !pk.channel<!pk.tile<64xf32>>
    %b = pk.load %A[%d : !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[64], f32> -> !pk.tile<64xf32>
    pk.commit %1, %b : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
  pk.role consumer {
    %a = pk.consume %0 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    %b = pk.consume %1 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.acquire %2 : !pk.channel<!pk.tile<64xf32>>
    %sum = pk.add %a, %b : !pk.tile<64xf32>
    %t = pk.exp %sum : !pk.tile<64xf32>
    pk.release %0 : !pk.channel<!pk.tile<64xf32>>
    pk.release %1 : !pk.channel<!pk.tile<64xf32>>
    pk.commit %2, %t : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
  }
  pk.role storer {
    %d = pk.block[%zero] : !pk.block<64 by 64>
    %t = pk.consume %2 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
    pk.store %t, %B[%d : !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64xf32>, !pk.private<[64], f32>
    pk.release %2 : !pk.channel<!pk.tile<64xf32>>
  }
}

// -----

// Each task waits, with a fence of its own, before it loads what the kernel writes: the wait in front of all needs none.
// And what is stored once, in the only task, meets nothing of its own, though its place does not depend on the task.
// CHECK-LABEL: pk.kernel @each_waits
// CHECK: pk.role loader
// CHECK: pk.wait %phase
// CHECK-NEXT: pk.fence acquire_gpu
// CHECK-NOT: pk.fence
// CHECK: pk.tasks
// CHECK: pk.wait %ready
// CHECK-NEXT: pk.fence acquire_gpu
// CHECK-NEXT: pk.fence async_global
// CHECK: pk.role storer
// CHECK: pk.tasks
// CHECK-NOT: pk.drain
// CHECK: pk.store
// CHECK-NEXT: pk.drain read
pk.kernel @each_waits(%A: !pk.private<[M], f32> {pk.name = "A"}, %phase: !pk.signal<[1]> {pk.name = "phase"}, %ready: !pk.signal<[M by 64]> {pk.name = "ready"}) attributes {derived} {
  %0 = pk.channel "A" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %1 = pk.channel "B" stages 1 : !pk.channel<!pk.tile<64xf32>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %count = pk.block_count <M by 64>
  %rank = pk.rank
  pk.role loader {
    pk.wait %phase[%zero] for %one : !pk.signal<[1]>
    pk.tasks (%i) in (%count) {
      pk.wait %ready[%i] for %one : !pk.signal<[M by 64]>
      %m = pk.block[%i] : !pk.block<M by 64>
      pk.acquire %0 : !pk.channel<!pk.tile<64xf32>>
      %a = pk.load %A[%m : !pk.block<M by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[M], f32> -> !pk.tile<64xf32>
      pk.commit %0, %a : !pk.channel<!pk.tile<64xf32>>, !pk.tile<64xf32>
    }
  }
  pk.role storer {
    pk.tasks (%i) in (%one) {
      %m = pk.block[%zero] : !pk.block<M by 64>
      %t = pk.consume %1 : !pk.channel<!pk.tile<64xf32>> -> !pk.tile<64xf32>
      pk.store %t, %A[%m : !pk.block<M by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<64xf32>, !pk.private<[M], f32>
      pk.release %1 : !pk.channel<!pk.tile<64xf32>>
    }
    pk.signal %ready at %rank[%zero] by %one : !pk.signal<[M by 64]>
    pk.signal %phase at %rank[%zero] by %one : !pk.signal<[1]>
  }
}
