// What a task computes leaves in the stage of an operand that it is done with.
// RUN: pkc-opt %s -p pk-share-stages --split-input-file --remarks | filecheck %s

// CHECK-LABEL: pk.kernel @shared
// CHECK: [[Q:%.*]] = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
// CHECK-NEXT: pk.channel "O" stages 1 in [[Q]] : !pk.channel<!pk.tile<128x64xbf16>>
pk.kernel @shared(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %q = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %k = pk.channel "K" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  %o = pk.channel "O" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
      pk.acquire %q : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %q, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer warps 8 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
      %a = pk.consume %q : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      %b = pk.consume %k : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      pk.release %k : !pk.channel<!pk.tile<64x64xbf16>>
      pk.release %q : !pk.channel<!pk.tile<128x64xbf16>>
      %r = pk.cast %s : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
      pk.acquire %o : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %o, %r : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role storer warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %r = pk.consume %o : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %o : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
}

// -----

// Two of the three warpgroups have the rows of a tile; none has only its own.
// CHECK-LABEL: pk.kernel @three_warpgroups
// CHECK-NOT: in %
// CHECK: pk.channel: O has stages of its own, not those of Q, of which a warpgroup reads rows that others would overwrite [pk-share-stages]
pk.kernel @three_warpgroups(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %q = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %k = pk.channel "K" stages 1 : !pk.channel<!pk.tile<64x64xbf16>>
  %o = pk.channel "O" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
      pk.acquire %q : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %q, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer warps 12 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
      %a = pk.consume %q : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      %b = pk.consume %k : !pk.channel<!pk.tile<64x64xbf16>> -> !pk.tile<64x64xbf16>
      %s = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      pk.release %k : !pk.channel<!pk.tile<64x64xbf16>>
      pk.release %q : !pk.channel<!pk.tile<128x64xbf16>>
      %r = pk.cast %s : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
      pk.acquire %o : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %o, %r : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role storer warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %r = pk.consume %o : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %o : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
}

// -----

// The right operand is read by all warpgroups, here and where it is both.
// CHECK-LABEL: pk.kernel @right
// CHECK-NOT: in %
// CHECK: pk.channel: O has stages of its own, not those of Q, of which a warpgroup reads rows that others would overwrite [pk-share-stages]
pk.kernel @right(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %q = pk.channel "Q" stages 1 : !pk.channel<!pk.tile<128x128xbf16>>
  %o = pk.channel "O" stages 1 : !pk.channel<!pk.tile<128x128xbf16>>
  pk.role loader warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x128xbf16>
      pk.acquire %q : !pk.channel<!pk.tile<128x128xbf16>>
      pk.commit %q, %t : !pk.channel<!pk.tile<128x128xbf16>>, !pk.tile<128x128xbf16>
    }
  }
  pk.role consumer warps 8 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x128xf32>
      %a = pk.consume %q : !pk.channel<!pk.tile<128x128xbf16>> -> !pk.tile<128x128xbf16>
      %s = pk.mma %a, %a, %zero : !pk.tile<128x128xbf16>, !pk.tile<128x128xbf16> -> !pk.tile<128x128xf32>
      pk.release %q : !pk.channel<!pk.tile<128x128xbf16>>
      %r = pk.cast %s : !pk.tile<128x128xf32> -> !pk.tile<128x128xbf16>
      pk.acquire %o : !pk.channel<!pk.tile<128x128xbf16>>
      pk.commit %o, %r : !pk.channel<!pk.tile<128x128xbf16>>, !pk.tile<128x128xbf16>
    }
  }
  pk.role storer warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %r = pk.consume %o : !pk.channel<!pk.tile<128x128xbf16>> -> !pk.tile<128x128xbf16>
      pk.release %o : !pk.channel<!pk.tile<128x128xbf16>>
    }
  }
}

// -----

// A residual is used up, element by element, when the result is written over it.
// CHECK-LABEL: pk.kernel @residual
// CHECK: [[R:%.*]] = pk.channel "R" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
// CHECK-NEXT: pk.channel "C" stages 1 in [[R]] : !pk.channel<!pk.tile<128x64xbf16>>
// CHECK-NEXT: pk.channel "A"
pk.kernel @residual(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %r = pk.channel "R" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %k = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  %c = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role loader warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
      pk.acquire %r : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %r, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer warps 8 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
      %a, %b = pk.consume %k : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
      %s = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      pk.release %k : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
      %came = pk.consume %r : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      %wide = pk.cast %came : !pk.tile<128x64xbf16> -> !pk.tile<128x64xf32>
      pk.acquire %c : !pk.channel<!pk.tile<128x64xbf16>>
      %sum = pk.add %s, %wide : !pk.tile<128x64xf32>
      %made = pk.cast %sum : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
      pk.commit %c, %made : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
      pk.release %r : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
  pk.role storer warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.consume %c : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %c : !pk.channel<!pk.tile<128x64xbf16>>
    }
  }
}

// -----

// What is computed from the residual is needed once more behind the first result: it is not overwritten.
// CHECK-LABEL: pk.kernel @needed_again
// CHECK-NOT: in %
// CHECK: pk.channel: C has stages of its own, not those of R
pk.kernel @needed_again(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %r = pk.channel "R" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %k = pk.channel "A" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
  %c = pk.channel "C" stages 1 : !pk.channel<!pk.tile<128x64xbf16>>
  %d = pk.channel "D" stages 1 : !pk.channel<!pk.tile<128x64xf32>>
  pk.role loader warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.full 0.000000e+00 : bf16 : !pk.tile<128x64xbf16>
      pk.acquire %r : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %r, %t : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role consumer warps 8 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %zero = pk.full 0.000000e+00 : f32 : !pk.tile<128x64xf32>
      %a, %b = pk.consume %k : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>> -> !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>
      %s = pk.mma %a, %b, %zero : !pk.tile<128x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<128x64xf32>
      pk.release %k : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<64x64xbf16>>
      %came = pk.consume %r : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      %wide = pk.cast %came : !pk.tile<128x64xbf16> -> !pk.tile<128x64xf32>
      %sum = pk.add %s, %wide : !pk.tile<128x64xf32>
      pk.release %r : !pk.channel<!pk.tile<128x64xbf16>>
      %made = pk.cast %sum : !pk.tile<128x64xf32> -> !pk.tile<128x64xbf16>
      pk.acquire %c : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %c, %made : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
      %twice = pk.add %sum, %sum : !pk.tile<128x64xf32>
      pk.acquire %d : !pk.channel<!pk.tile<128x64xf32>>
      pk.commit %d, %twice : !pk.channel<!pk.tile<128x64xf32>>, !pk.tile<128x64xf32>
    }
  }
  pk.role storer warps 1 {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %t = pk.consume %c : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %c : !pk.channel<!pk.tile<128x64xbf16>>
      %u = pk.consume %d : !pk.channel<!pk.tile<128x64xf32>> -> !pk.tile<128x64xf32>
      pk.release %d : !pk.channel<!pk.tile<128x64xf32>>
    }
  }
}
