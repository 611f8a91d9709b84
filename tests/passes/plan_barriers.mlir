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
