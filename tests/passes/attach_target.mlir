// RUN: pkc-opt %s -p "pk-attach-target" --split-input-file --verify-diagnostics | filecheck %s

// CHECK: pk.kernel @k() attributes {schedule = {stages = 2 : i64}, target = "sm_90a"} {
pk.kernel @k() attributes {schedule = {stages = 2 : i64}} {
}

// -----

// A kernel that has a target keeps it.
// CHECK: error[PK520]: unknown target `sm_80`
pk.kernel @k() attributes {target = "sm_80"} {
}
