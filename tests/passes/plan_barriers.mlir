// Named barriers are numbered one behind the other, of each role as many as it needs.
// RUN: pkc-opt %s -p pk-plan-barriers --split-input-file | filecheck %s

// One for all warps of a role and one for each of its warpgroups; a single warp has none. Roles of CTAs that communicate
// have other numbers.
// CHECK-LABEL: pk.kernel @roles
// CHECK: pk.role loader warps 1 {{.*}}first_barrier = 1 : i64
// CHECK: pk.role consumer warps 8 {{.*}}first_barrier = 1 : i64
// CHECK: pk.role storer warps 2 {{.*}}first_barrier = 4 : i64
// CHECK: pk.role communicator warps 4 {{.*}}first_barrier = 5 : i64
// CHECK: pk.role communicator warps 2 {{.*}}first_barrier = 7 : i64
pk.kernel @roles() {
  pk.role loader warps 1 attributes {group = "compute"} {
    %z = arith.constant 0 : index
  }
  pk.role consumer warps 8 attributes {group = "compute"} {
    %z = arith.constant 0 : index
  }
  pk.role storer warps 2 attributes {group = "compute"} {
    %z = arith.constant 0 : index
  }
  pk.role communicator warps 4 attributes {group = "communicate"} {
    %z = arith.constant 0 : index
  }
  pk.role communicator warps 2 attributes {group = "compute"} {
    %z = arith.constant 0 : index
  }
}

// -----

// Warpgroups that get out of step have one more each: one where they begin together, one for each behind another.
// CHECK-LABEL: pk.kernel @staggered
// CHECK: pk.role consumer warps 12 {{.*}}first_barrier = 1 : i64
// CHECK: pk.role storer warps 2 {{.*}}first_barrier = 8 : i64
pk.kernel @staggered() {
  %0 = pk.channel "A, B" stages 2 : !pk.channel<!pk.tile<384x64xbf16>, !pk.tile<64x128xbf16>>
  pk.role consumer warps 12 attributes {group = "compute"} {
    %zero = pk.full 0.000000e+00 : f32 : !pk.tile<384x128xf32>
    %a, %b = pk.consume %0 : !pk.channel<!pk.tile<384x64xbf16>, !pk.tile<64x128xbf16>> -> !pk.tile<384x64xbf16>, !pk.tile<64x128xbf16>
    %p = pk.mma %a, %b, %zero {pieces = 2 : i64, chain = 0 : i64, staggered} : !pk.tile<384x64xbf16>, !pk.tile<64x128xbf16> -> !pk.tile<384x128xf32>
    pk.release %0 : !pk.channel<!pk.tile<384x64xbf16>, !pk.tile<64x128xbf16>>
  }
  pk.role storer warps 2 attributes {group = "compute"} {
    %z = arith.constant 0 : index
  }
}
