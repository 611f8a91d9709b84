// How much of an epilogue may be computed beside the MMAs of the next task.
// RUN: pkc-opt %s -p pk-plan-epilogues --split-input-file --remarks | filecheck %s

// Half of the 128 elements of each thread: 64 more of them fit beside its accumulators. The stage of the bias is freed
// behind them; its loader fills it behind the stages of its loop.
// CHECK-LABEL: pk.kernel @silu
// CHECK: pk.commit %{{.*}} {chain = 0 : i64, later = 64 : i64}
pk.kernel @silu(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}) attributes {derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  %2 = pk.channel "b" stages 1 : !pk.channel<!pk.tile<256xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128>
  %columns = pk.block_count <N by 256>
  %depth = pk.block_count <K by 64>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 128>
      %n = pk.block[%j] : !pk.block<N by 256>
      scf.for %s = %zero to %depth step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      }
      pk.acquire %2 : !pk.channel<!pk.tile<256xbf16>>
      %c = pk.load %B[%zero, %n : index, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<256xbf16>
      pk.commit %2, %c : !pk.channel<!pk.tile<256xbf16>>, !pk.tile<256xbf16>
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
      %acc_1 = scf.for %s = %zero to %depth step %one iter_args(%t = %acc) -> (!pk.tile<128x256xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        scf.yield %u : !pk.tile<128x256xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      %bias = pk.consume %2 : !pk.channel<!pk.tile<256xbf16>> -> !pk.tile<256xbf16>
      pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
      %22 = pk.sigmoid %acc_1 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %23 = pk.mul %acc_1, %22 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %24 = pk.cast %23 {chain = 0 : i64} : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
      pk.commit %1, %24 {chain = 0 : i64} : !pk.channel<!pk.tile<128x256xbf16>>, !pk.tile<128x256xbf16>
      pk.release %2 : !pk.channel<!pk.tile<256xbf16>>
    }
  }
}

// -----

// An addition takes no longer than what is written: nothing waits, and nothing is said.
// CHECK-LABEL: pk.kernel @plain
// CHECK-NOT: later
// CHECK-NOT: remark
pk.kernel @plain(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}) attributes {derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  %2 = pk.channel "b" stages 1 : !pk.channel<!pk.tile<256xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128>
  %columns = pk.block_count <N by 256>
  %depth = pk.block_count <K by 64>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 128>
      %n = pk.block[%j] : !pk.block<N by 256>
      scf.for %s = %zero to %depth step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      }
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
      %acc_1 = scf.for %s = %zero to %depth step %one iter_args(%t = %acc) -> (!pk.tile<128x256xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        scf.yield %u : !pk.tile<128x256xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
      %23 = pk.add %acc_1, %acc_1 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %24 = pk.cast %23 {chain = 0 : i64} : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
      pk.commit %1, %24 {chain = 0 : i64} : !pk.channel<!pk.tile<128x256xbf16>>, !pk.tile<128x256xbf16>
    }
  }
}

// -----

// Accumulators that wait have registers of their own.
// CHECK-LABEL: pk.kernel @few_registers
// CHECK-NOT: later
// CHECK: remark: {{.*}}tensor cores are idle during the whole epilogue: a thread has no registers for 64 more elements [pk-plan-epilogues]
pk.kernel @few_registers(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}) attributes {derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  %2 = pk.channel "b" stages 1 : !pk.channel<!pk.tile<256xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128>
  %columns = pk.block_count <N by 256>
  %depth = pk.block_count <K by 64>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 128>
      %n = pk.block[%j] : !pk.block<N by 256>
      scf.for %s = %zero to %depth step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      }
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 200 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
      %acc_1 = scf.for %s = %zero to %depth step %one iter_args(%t = %acc) -> (!pk.tile<128x256xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        scf.yield %u : !pk.tile<128x256xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
      %22 = pk.sigmoid %acc_1 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %23 = pk.mul %acc_1, %22 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %24 = pk.cast %23 {chain = 0 : i64} : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
      pk.commit %1, %24 {chain = 0 : i64} : !pk.channel<!pk.tile<128x256xbf16>>, !pk.tile<128x256xbf16>
    }
  }
}

// -----

// The loader would wait for the stage of the bias, which is freed beside the loop that it has not filled yet.
// CHECK-LABEL: pk.kernel @loader_first
// CHECK-NOT: later
// CHECK: remark: {{.*}}tensor cores are idle during the whole epilogue: what its loop needs comes behind other things of a task [pk-plan-epilogues]
pk.kernel @loader_first(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}) attributes {derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  %2 = pk.channel "b" stages 1 : !pk.channel<!pk.tile<256xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128>
  %columns = pk.block_count <N by 256>
  %depth = pk.block_count <K by 64>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 128>
      %n = pk.block[%j] : !pk.block<N by 256>
      pk.acquire %2 : !pk.channel<!pk.tile<256xbf16>>
      %c = pk.load %B[%zero, %n : index, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<256xbf16>
      pk.commit %2, %c : !pk.channel<!pk.tile<256xbf16>>, !pk.tile<256xbf16>
      scf.for %s = %zero to %depth step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      }
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
      %acc_1 = scf.for %s = %zero to %depth step %one iter_args(%t = %acc) -> (!pk.tile<128x256xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        scf.yield %u : !pk.tile<128x256xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      %bias = pk.consume %2 : !pk.channel<!pk.tile<256xbf16>> -> !pk.tile<256xbf16>
      pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
      %22 = pk.sigmoid %acc_1 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %23 = pk.mul %acc_1, %22 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %24 = pk.cast %23 {chain = 0 : i64} : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
      pk.commit %1, %24 {chain = 0 : i64} : !pk.channel<!pk.tile<128x256xbf16>>, !pk.tile<128x256xbf16>
      pk.release %2 : !pk.channel<!pk.tile<256xbf16>>
    }
  }
}

// -----

// The same of what the consumer takes before its loop.
// CHECK-LABEL: pk.kernel @consumer_first
// CHECK-NOT: later
// CHECK: remark: {{.*}}tensor cores are idle during the whole epilogue: the task does more in front of its loop [pk-plan-epilogues]
pk.kernel @consumer_first(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}) attributes {derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  %2 = pk.channel "b" stages 1 : !pk.channel<!pk.tile<256xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128>
  %columns = pk.block_count <N by 256>
  %depth = pk.block_count <K by 64>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 128>
      %n = pk.block[%j] : !pk.block<N by 256>
      scf.for %s = %zero to %depth step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      }
      pk.acquire %2 : !pk.channel<!pk.tile<256xbf16>>
      %c = pk.load %B[%zero, %n : index, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<256xbf16>
      pk.commit %2, %c : !pk.channel<!pk.tile<256xbf16>>, !pk.tile<256xbf16>
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
      %bias = pk.consume %2 : !pk.channel<!pk.tile<256xbf16>> -> !pk.tile<256xbf16>
      %acc_1 = scf.for %s = %zero to %depth step %one iter_args(%t = %acc) -> (!pk.tile<128x256xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        scf.yield %u : !pk.tile<128x256xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
      %22 = pk.sigmoid %acc_1 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %23 = pk.mul %acc_1, %22 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %24 = pk.cast %23 {chain = 0 : i64} : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
      pk.commit %1, %24 {chain = 0 : i64} : !pk.channel<!pk.tile<128x256xbf16>>, !pk.tile<128x256xbf16>
      pk.release %2 : !pk.channel<!pk.tile<256xbf16>>
    }
  }
}

// -----

// Others may need the result to come to their end, and this task them.
// CHECK-LABEL: pk.kernel @counters
// CHECK-NOT: later
// CHECK: remark: {{.*}}tensor cores are idle during the whole epilogue: roles wait for other CTAs or ranks [pk-plan-epilogues]
pk.kernel @counters(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.private<[K, N], bf16> {pk.name = "B"}, %done: !pk.signal<[1]> {pk.name = "done"}) attributes {derived, comm_sms = 0 : i64} {
  %0 = pk.channel "A, B" stages 3 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
  %1 = pk.channel "cast" stages 1 : !pk.channel<!pk.tile<128x256xbf16>>
  %2 = pk.channel "b" stages 1 : !pk.channel<!pk.tile<256xbf16>>
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rows = pk.block_count <M by 128>
  %columns = pk.block_count <N by 256>
  %depth = pk.block_count <K by 64>
  pk.role loader warps 1 attributes {group = "compute", first_warp = 8 : i64, registers = 40 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %m = pk.block[%i] : !pk.block<M by 128>
      %n = pk.block[%j] : !pk.block<N by 256>
      scf.for %s = %zero to %depth step %one {
        %k = pk.block[%s] : !pk.block<K by 64>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        %a = pk.load %A[%m, %k : !pk.block<M by 128>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<128x64xbf16>
        %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 256>] : !pk.private<[K, N], bf16> -> !pk.tile<64x256xbf16>
        pk.commit %0, %a, %b : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>, !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
      }
      pk.wait %done[%zero] for %one : !pk.signal<[1]>
    }
  }
  pk.role consumer warps 8 attributes {group = "compute", first_warp = 0 : i64, registers = 232 : i64} {
    pk.tasks (%i, %j) in (%rows, %columns) {
      %acc = pk.full 0.000000e+00 : f32 : !pk.tile<128x256xf32>
      %acc_1 = scf.for %s = %zero to %depth step %one iter_args(%t = %acc) -> (!pk.tile<128x256xf32>) {
        %a, %b = pk.consume %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>
        %u = pk.mma %a, %b, %t {in_flight = 1 : i64} : !pk.tile<128x64xbf16>, !pk.tile<64x256xbf16> -> !pk.tile<128x256xf32>
        pk.release %0 deferred 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
        scf.yield %u : !pk.tile<128x256xf32>
      }
      pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x256xbf16>>
      pk.acquire %1 : !pk.channel<!pk.tile<128x256xbf16>>
      %22 = pk.sigmoid %acc_1 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %23 = pk.mul %acc_1, %22 {chain = 0 : i64} : !pk.tile<128x256xf32>
      %24 = pk.cast %23 {chain = 0 : i64} : !pk.tile<128x256xf32> -> !pk.tile<128x256xbf16>
      pk.commit %1, %24 {chain = 0 : i64} : !pk.channel<!pk.tile<128x256xbf16>>, !pk.tile<128x256xbf16>
    }
  }
}
