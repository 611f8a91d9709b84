// A role that an author wrote is shared out among its CTAs.
// RUN: pkc-opt %s -p pk-spread-roles --split-input-file | filecheck %s

// One CTA signals when all have done their tasks; all wait.
// CHECK-LABEL: pk.kernel @tell
// CHECK-SAME: %joined: !pk.signal<[1]>
// CHECK-SAME: attributes {derived, written}
// CHECK: pk.tasks (%i) in (%n) attributes {per_cta, part = 0 : i64} {
// CHECK: pk.signal %joined at
// CHECK: pk.tasks (%{{.*}}) in (%{{.*}}) attributes {per_cta, part = 1 : i64} {
// CHECK: %[[CTAS:.*]] = pk.ctas communicator
// CHECK-NEXT: %[[ALL:.*]] = arith.muli %{{.*}}, %[[CTAS]]
// CHECK-NEXT: pk.wait %joined[%{{.*}}] for %[[ALL]]
// CHECK-NEXT: pk.signal_all %done
// CHECK-NEXT: }
// CHECK-NEXT: pk.wait %done
pk.kernel @tell(%X: !pk.pgl<[M], f32, symmetric> {pk.name = "X"}, %done: !pk.signal<[1]> {pk.name = "done"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <M by 16>
    pk.tasks (%i) in (%n) {
      %m = pk.block[%i] : !pk.block<M by 16>
      %t = pk.full 1.0 : f32 : !pk.tile<16xf32>
      pk.store %t, %X at %one[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[M], f32, symmetric>
    }
    pk.signal_all %done[%zero] by %one : !pk.signal<[1]>
    pk.wait %done[%zero] for %one : !pk.signal<[1]>
  }
}

// -----

// Iterations that store to different places need no wait; tasks that read what others wrote do. Other roles than
// communicators are to be split.
// CHECK-LABEL: pk.kernel @places
// CHECK: pk.role consumer attributes {derived} {
// CHECK: scf.for
// CHECK-NOT: pk.wait
// CHECK: pk.tasks (%i)
// CHECK: pk.store
// CHECK: pk.signal %joined
// CHECK: pk.wait %joined
// CHECK-NEXT: pk.tasks (%j)
// CHECK: pk.load %X
pk.kernel @places(%X: !pk.private<[M], f32> {pk.name = "X"}, %Y: !pk.private<[M], f32> {pk.name = "Y"}) {
  pk.role consumer {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %ranks = pk.dim "ranks"
    %n = pk.block_count <M by 16>
    scf.for %s = %zero to %ranks step %one {
      %r = pk.ring_peer %s
      %count = pk.block_count <M by 16> of %r
      pk.tasks (%i) in (%count) {
        %m = pk.block[%i] of %r : !pk.block<M by 16>
        %t = pk.full 1.0 : f32 : !pk.tile<16xf32>
        pk.store %t, %X[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
      }
    }
    pk.tasks (%j) in (%n) {
      %m = pk.block[%j] : !pk.block<M by 16>
      %t = pk.load %X[%m : !pk.block<M by 16>] : !pk.private<[M], f32> -> !pk.tile<16xf32>
      pk.store %t, %Y[%m : !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.private<[M], f32>
    }
  }
}

// -----

// In a loop each CTA waits for those of the iterations before, so that one that is ahead is not counted for another.
// CHECK-LABEL: pk.kernel @rounds
// CHECK: scf.for
// CHECK: pk.tasks (%i)
// CHECK: arith.addi
// CHECK: %[[DONE:[0-9]+]] = arith.subi
// CHECK: %[[BEFORE:[0-9]+]] = arith.muli %[[DONE]],
// CHECK-NEXT: pk.wait %joined[%{{.*}}] for %[[BEFORE]]
// CHECK: pk.signal %joined
// CHECK: pk.tasks (%{{.*}}) in
// CHECK: %[[ALL:[0-9]+]] = arith.muli
// CHECK-NEXT: pk.wait %joined[%{{.*}}] for %[[ALL]]
// CHECK-NEXT: pk.signal_all %done
pk.kernel @rounds(%X: !pk.pgl<[4, M], f32, symmetric> {pk.name = "X"}, %done: !pk.signal<[4]> {pk.name = "done"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    scf.for %e = %zero to %four step %one {
      %n = pk.block_count <M by 16>
      pk.tasks (%i) in (%n) {
        %m = pk.block[%i] : !pk.block<M by 16>
        %t = pk.full 1.0 : f32 : !pk.tile<16xf32>
        pk.store %t, %X at %one[%e, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[4, M], f32, symmetric>
      }
      pk.signal_all %done[%e] by %one : !pk.signal<[4]>
    }
  }
}

// -----

// Where some iterations take a branch and others do not, CTAs signal in place of it: each iteration has as many signals.
// CHECK-LABEL: pk.kernel @in_a_branch
// CHECK: scf.for %i
// CHECK: scf.if
// CHECK: pk.tasks (%{{.*}}) in
// CHECK: pk.signal %joined
// CHECK: pk.signal %done
// CHECK: } else {
// CHECK: arith.addi
// CHECK: %[[DONE:[0-9]+]] = arith.subi
// CHECK: %[[BEFORE:[0-9]+]] = arith.muli %[[DONE]],
// CHECK-NEXT: pk.wait %joined[%{{.*}}] for %[[BEFORE]]
// CHECK: pk.signal %joined
pk.kernel @in_a_branch(%X: !pk.pgl<[4, M], f32, symmetric> {pk.name = "X"}, %done: !pk.signal<[1]> {pk.name = "done"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %rank = pk.rank
    scf.for %i = %zero to %four step %one {
      %taken = arith.cmpi slt, %rank, %i : index
      scf.if %taken {
        %n = pk.block_count <M by 16>
        pk.tasks (%j) in (%n) {
          %m = pk.block[%j] : !pk.block<M by 16>
          %t = pk.full 1.0 : f32 : !pk.tile<16xf32>
          pk.store %t, %X at %one[%i, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[4, M], f32, symmetric>
        }
        pk.signal %done at %one[%zero] by %one : !pk.signal<[1]>
      }
    }
  }
}

// -----

// A branch that all iterations take, or none does, is as one around the loop: nobody signals in place of it.
// CHECK-LABEL: pk.kernel @in_a_branch_of_ranks
// CHECK: pk.signal %joined
// CHECK-NOT: else
pk.kernel @in_a_branch_of_ranks(%X: !pk.pgl<[4, M], f32, symmetric> {pk.name = "X"}, %done: !pk.signal<[1]> {pk.name = "done"}) {
  pk.role communicator {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %rank = pk.rank
    %taken = arith.cmpi slt, %rank, %one : index
    scf.for %i = %zero to %four step %one {
      scf.if %taken {
        scf.for %k = %zero to %four step %one {
          %n = pk.block_count <M by 16>
          pk.tasks (%j) in (%n) {
            %m = pk.block[%j] : !pk.block<M by 16>
            %t = pk.full 1.0 : f32 : !pk.tile<16xf32>
            pk.store %t, %X at %one[%i, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[4, M], f32, symmetric>
          }
          pk.signal %done at %one[%zero] by %one : !pk.signal<[1]>
        }
      }
    }
  }
}

// -----

// What stands beside the roles, of a scalar, each of them computes for itself.
// CHECK-LABEL: pk.kernel @by_a_scalar
// CHECK-NEXT: pk.role communicator
// CHECK-NEXT: %[[A:.*]] = arith.index_cast %flag
// CHECK: pk.tasks (%{{.*}}) in (%[[A]])
// CHECK: pk.role consumer
// CHECK-NEXT: %[[B:.*]] = arith.index_cast %flag
// CHECK: pk.tasks (%{{.*}}) in (%[[B]])
pk.kernel @by_a_scalar(%X: !pk.pgl<[4, M], f32, symmetric> {pk.name = "X"}, %Y: !pk.pgl<[4, M], f32, symmetric> {pk.name = "Y"}, %flag: i32 {pk.name = "flag"}) {
  %count = arith.index_cast %flag : i32 to index
  pk.role communicator {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    pk.tasks (%i) in (%count) {
      %t = pk.full 1.0 : f32 : !pk.tile<16xf32>
      pk.store %t, %X[%i, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[4, M], f32, symmetric>
    }
  }
  pk.role consumer {
    %zero = arith.constant 0 : index
    %m = pk.block[%zero] : !pk.block<M by 16>
    pk.tasks (%i) in (%count) {
      %t = pk.full 2.0 : f32 : !pk.tile<16xf32>
      pk.store %t, %Y[%i, %m : index, !pk.block<M by 16>] : !pk.tile<16xf32>, !pk.pgl<[4, M], f32, symmetric>
    }
  }
}
