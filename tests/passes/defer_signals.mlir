// Several stores of a role are in flight: signals and stages lag behind, and drains count what may remain.
// RUN: pkc-opt %s -p pk-defer-signals,pk-insert-fences --split-input-file --remarks | filecheck %s

// Two stores in each iteration: behind the first of this one's, and behind both of the earlier ones'.
// CHECK-LABEL: pk.kernel @fetch
// CHECK: pk.role communicator
// CHECK: pk.role communicator
// CHECK: pk.tasks
// CHECK: pk.store {{.*}} %K_fetched
// CHECK-NEXT: pk.store {{.*}} %V_fetched
// CHECK-NEXT: pk.drain read left 5
// CHECK-NEXT: pk.release %{{.*}} deferred 2
// CHECK-NEXT: pk.drain read left 4
// CHECK-NEXT: pk.release %{{.*}} deferred 2
// CHECK-NEXT: pk.signal %ready at {{.*}} {deferred, order = "release_gpu"}
// CHECK-NEXT: pk.drain full left 6
// CHECK-NEXT: pk.send_deferred left 3 batch 8
// CHECK-NEXT: }
// CHECK-NEXT: pk.drain read
// CHECK-NEXT: pk.release_deferred %[[K:.*]] :
// CHECK-NEXT: pk.release_deferred
// CHECK-NEXT: pk.drain full
// CHECK-NEXT: pk.send_deferred left 0 batch 1
// CHECK-NEXT: }
// CHECK: pk.role loader
pk.kernel @fetch(%K: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "K"}, %V: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "V"}, %K_fetched: !pk.private<[M, 64], bf16> {pk.name = "K.fetched", pk.scratch}, %V_fetched: !pk.private<[M, 64], bf16> {pk.name = "V.fetched", pk.scratch}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}, %entered: !pk.signal<[1]> {pk.name = "entered"}) attributes {derived} {
  %k = pk.channel "K" stages 6 : !pk.channel<!pk.tile<16x64xbf16>>
  %v = pk.channel "V" stages 6 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.signal_all %entered[%zero] by %one : !pk.signal<[1]>
    pk.wait %entered[%zero] for %one : !pk.signal<[1]>
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      pk.acquire %k : !pk.channel<!pk.tile<16x64xbf16>>
      %a = pk.load %K[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.pgl<[M, 64], bf16, shard 0> -> !pk.tile<16x64xbf16>
      pk.commit %k, %a : !pk.channel<!pk.tile<16x64xbf16>>, !pk.tile<16x64xbf16>
      pk.acquire %v : !pk.channel<!pk.tile<16x64xbf16>>
      %b = pk.load %V[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.pgl<[M, 64], bf16, shard 0> -> !pk.tile<16x64xbf16>
      pk.commit %v, %b : !pk.channel<!pk.tile<16x64xbf16>>, !pk.tile<16x64xbf16>
    }
  }
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %a = pk.consume %k : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      %b = pk.consume %v : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %a, %K_fetched[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.store %b, %V_fetched[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %k : !pk.channel<!pk.tile<16x64xbf16>>
      pk.release %v : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role loader {
    pk.wait %ready[%zero] for %one : !pk.signal<[M by 16]>
  }
}

// -----

// The tiles to pass on are made from what has been passed on before: a deferred signal would hold up the next tile.
// CHECK-LABEL: pk.kernel @forwards
// CHECK-NOT: {{[{ ]}}deferred
// CHECK: // remark: {{.*}}: pk.signal: each signal waits until what it announces is stored: what its role waits for may wait for these signals [pk-defer-signals]
pk.kernel @forwards(%X: !pk.private<[M, 64], bf16> {pk.name = "X", pk.scratch}, %Y: !pk.pgl<[M, 64], bf16, symmetric> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "X" stages 4 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %next = pk.ring_peer %one
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %one : !pk.signal<[M by 16]>
      pk.acquire %c : !pk.channel<!pk.tile<16x64xbf16>>
      %x = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[M, 64], bf16> -> !pk.tile<16x64xbf16>
      pk.commit %c, %x : !pk.channel<!pk.tile<16x64xbf16>>, !pk.tile<16x64xbf16>
    }
  }
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y at %next[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.pgl<[M, 64], bf16, symmetric>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %ready at %next[%number] by %one : !pk.signal<[M by 16]>
    }
  }
}

// -----

// The same through another counter and another role: whoever makes the tiles waits for those who got the last ones.
// CHECK-LABEL: pk.kernel @round
// CHECK-NOT: {{[{ ]}}deferred
// CHECK: // remark: {{.*}}: pk.signal: each signal waits until what it announces is stored: what its role waits for may wait for these signals [pk-defer-signals]
pk.kernel @round(%X: !pk.private<[M, 64], bf16> {pk.name = "X", pk.scratch}, %Y: !pk.pgl<[M, 64], bf16, symmetric> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}, %back: !pk.signal<[M by 16]> {pk.name = "back"}) attributes {derived} {
  %c = pk.channel "X" stages 4 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %next = pk.ring_peer %one
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.acquire %c : !pk.channel<!pk.tile<16x64xbf16>>
      %x = pk.load %X[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.private<[M, 64], bf16> -> !pk.tile<16x64xbf16>
      pk.commit %c, %x : !pk.channel<!pk.tile<16x64xbf16>>, !pk.tile<16x64xbf16>
      pk.wait %back[%number] for %one : !pk.signal<[M by 16]>
    }
  }
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y at %next[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.pgl<[M, 64], bf16, symmetric>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %ready at %next[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role consumer {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %ready[%number] for %one : !pk.signal<[M by 16]>
      pk.signal %back at %next[%number] by %one : !pk.signal<[M by 16]>
    }
  }
}

// -----

// One stage: nothing else could be in flight. Stores by ordinary instructions are over when they are made. Beside roles
// that compute, signals are not to be late.
// CHECK-LABEL: pk.kernel @one
// CHECK-NOT: {{[{ ]}}deferred
// CHECK-LABEL: pk.kernel @registers
// CHECK-NOT: {{[{ ]}}deferred
// CHECK-LABEL: pk.kernel @beside
// CHECK-NOT: {{[{ ]}}deferred
// CHECK: // remark: {{.*}}: pk.signal: each signal waits until what it announces is stored: X has one stage, so that no two stores are in flight [pk-defer-signals]
// CHECK: // remark: {{.*}}: pk.signal: each signal waits until what it announces is stored: the stores are made by ordinary instructions [pk-defer-signals]
// CHECK-NOT: remark
pk.kernel @one(%Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "X" stages 1 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
}
pk.kernel @registers(%Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "X" stages 4 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "register", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
}
pk.kernel @beside(%Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}, %ready: !pk.signal<[M by 16]> {pk.name = "ready"}) attributes {derived} {
  %c = pk.channel "X" stages 4 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "compute"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %ready at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
  }
}

// -----

// Two signals in each iteration: those of three iterations stay behind, whose stores may be in flight.
// CHECK-LABEL: pk.kernel @announced_twice
// CHECK: pk.store
// CHECK: pk.signal %first at {{.*}} {deferred, order = "release_gpu"}
// CHECK-NEXT: pk.signal %second at {{.*}} {deferred, order = "release_gpu"}
// CHECK-NEXT: pk.drain full left 3
// CHECK-NEXT: pk.send_deferred left 6 batch 8
// CHECK: pk.send_deferred left 0 batch 1
// CHECK-NOT: remark
pk.kernel @announced_twice(%Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}, %first: !pk.signal<[M by 16]> {pk.name = "first"}, %second: !pk.signal<[M by 16]> {pk.name = "second"}) attributes {derived} {
  %c = pk.channel "X" stages 4 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %rank = pk.rank
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %first at %rank[%number] by %one : !pk.signal<[M by 16]>
      pk.signal %second at %rank[%number] by %two : !pk.signal<[M by 16]>
    }
  }
}

// -----

// A role that passes tiles on in two loops defers the signals of both, and sends all of one before the other.
// CHECK-LABEL: pk.kernel @two_loops
// CHECK: pk.signal %first {{.*}} {deferred
// CHECK: pk.send_deferred left 3 batch 8
// CHECK: pk.send_deferred left 0 batch 1
// CHECK: pk.signal %second {{.*}} {deferred
// CHECK: pk.send_deferred left 3 batch 8
// CHECK: pk.send_deferred left 0 batch 1
// CHECK: // remark: {{.*}}: pk.raise: each signal waits until what it announces is stored: its role defers signals of another kind [pk-defer-signals]
pk.kernel @two_loops(%Y: !pk.private<[M, 64], bf16> {pk.name = "Y"}, %first: !pk.signal<[M by 16]> {pk.name = "first"}, %second: !pk.signal<[M by 16]> {pk.name = "second"}, %third: !pk.signal<[M by 16]> {pk.name = "third"}) attributes {derived} {
  %c = pk.channel "X" stages 4 : !pk.channel<!pk.tile<16x64xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %n = pk.block_count <M by 16>
  pk.role communicator attributes {group = "communicate"} {
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %first at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.signal %second at %rank[%number] by %one : !pk.signal<[M by 16]>
    }
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      %x = pk.consume %c : !pk.channel<!pk.tile<16x64xbf16>> -> !pk.tile<16x64xbf16>
      pk.store %x, %Y[%m, %d : !pk.block<M by 16>, !pk.block<64 by 64>] {transfer = {by = "tma", why = ""}} : !pk.tile<16x64xbf16>, !pk.private<[M, 64], bf16>
      pk.release %c : !pk.channel<!pk.tile<16x64xbf16>>
      pk.raise %third at %rank[%number] to %one : !pk.signal<[M by 16]>
    }
  }
}
