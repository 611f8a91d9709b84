// Of which gathers some rows in a row lie behind each other, whatever the tables have.
// RUN: pkc-opt %s -p pk-plan-boxes --split-input-file | filecheck %s

// Positions divided by the rows of a page, and what is left; in a flat cache of 32 rows in each page; and where a page
// is as long as a block or longer.
// CHECK-LABEL: pk.kernel @pages
// CHECK: pk.gather %K rows %page {{.*}} {boxes = array<i64: 16, 1>} :
// CHECK: pk.gather %C rows %slot{{.*}} {boxes = array<i64: 32, 0>} :
// CHECK: pk.gather %L rows %long {{.*}} {boxes = array<i64: 64, 1>} :
pk.kernel @pages(%K: !pk.private<[P, 16, 64], bf16> {pk.name = "K"}, %C: !pk.private<[R, 64], bf16> {pk.name = "C"}, %L: !pk.private<[P, 128, 64], bf16> {pk.name = "L"}, %table: !pk.private<[B, N], i32> {pk.name = "table"}, %length: !pk.private<[B], i32> {pk.name = "length"}) attributes {target = "sm_90a"} {
  %zero = arith.constant 0 : index
  %end = pk.read %length[%zero] : !pk.private<[B], i32>
  %t = pk.block[%zero] to %end : !pk.block<T by 64>
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %at = pk.positions %t : !pk.block<T by 64> -> !pk.tile<64xi32>
  %sixteen = pk.full 16 : i32 : !pk.tile<64xi32>
  %number = pk.floordiv %at, %sixteen : !pk.tile<64xi32>
  %named = pk.gather %table rows %number dim 1 axes [0][%zero : index] : !pk.private<[B, N], i32>, !pk.tile<64xi32> -> !pk.tile<64xi32>
  %page = pk.clip %named axis 0 to %t fill -1 : i32 : !pk.tile<64xi32>, !pk.block<T by 64> -> !pk.tile<64xi32>
  %in = pk.mod %at, %sixteen : !pk.tile<64xi32>
  %k = pk.gather %K rows %page dim 0 axes [0, 0, 1][%in, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 16, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %many = pk.full 32 : i32 : !pk.tile<64xi32>
  %other = pk.floordiv %at, %many : !pk.tile<64xi32>
  %which = pk.gather %table rows %other dim 1 axes [0][%zero : index] : !pk.private<[B, N], i32>, !pk.tile<64xi32> -> !pk.tile<64xi32>
  %first = pk.mul %which, %many : !pk.tile<64xi32>
  %rest = pk.mod %at, %many : !pk.tile<64xi32>
  %flat = pk.add %first, %rest : !pk.tile<64xi32>
  %rows = pk.dim "R"
  %bound = pk.splat %rows : index -> !pk.tile<64xi32>
  %is_in = pk.compare lt, %flat, %bound : !pk.tile<64xi32> -> !pk.tile<64xi1>
  %none = pk.full -1 : i32 : !pk.tile<64xi32>
  %slot = pk.select %is_in, %flat, %none : !pk.tile<64xi1>, !pk.tile<64xi32>
  %c = pk.gather %C rows %slot[%d : !pk.block<64 by 64>] : !pk.private<[R, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %more = pk.full 128 : i32 : !pk.tile<64xi32>
  %one = pk.floordiv %at, %more : !pk.tile<64xi32>
  %long = pk.gather %table rows %one dim 1 axes [0][%zero : index] : !pk.private<[B, N], i32>, !pk.tile<64xi32> -> !pk.tile<64xi32>
  %inside = pk.mod %at, %more : !pk.tile<64xi32>
  %l = pk.gather %L rows %long dim 0 axes [0, 0, 1][%inside, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 128, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
}

// -----

// Rows that a table names one by one; positions that begin anywhere; pages of 4 rows; rows of which a page has some;
// two dimensions that go on; a row that is left out within a page.
// CHECK-LABEL: pk.kernel @apart
// CHECK-NOT: boxes
pk.kernel @apart(%K: !pk.private<[P, 64], bf16> {pk.name = "K"}, %L: !pk.private<[P, 16, 64], bf16> {pk.name = "L"}, %table: !pk.private<[T], i32> {pk.name = "table"}, %from: !pk.private<[B], i32> {pk.name = "from"}) attributes {target = "sm_90a"} {
  %zero = arith.constant 0 : index
  %t = pk.block[%zero] : !pk.block<T by 64>
  %d = pk.block[%zero] : !pk.block<64 by 64>
  %each = pk.load %table[%t : !pk.block<T by 64>] : !pk.private<[T], i32> -> !pk.tile<64xi32>
  %a = pk.gather %K rows %each[%d : !pk.block<64 by 64>] : !pk.private<[P, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %begin = pk.read %from[%zero] : !pk.private<[B], i32>
  %u = pk.block[%zero] from %begin : !pk.block<T by 64>
  %anywhere = pk.positions %u : !pk.block<T by 64> -> !pk.tile<64xi32>
  %sixteen = pk.full 16 : i32 : !pk.tile<64xi32>
  %ax = pk.floordiv %anywhere, %sixteen : !pk.tile<64xi32>
  %ay = pk.mod %anywhere, %sixteen : !pk.tile<64xi32>
  %b = pk.gather %L rows %ax dim 0 axes [0, 0, 1][%ay, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 16, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %at = pk.positions %t : !pk.block<T by 64> -> !pk.tile<64xi32>
  %four = pk.full 4 : i32 : !pk.tile<64xi32>
  %bx = pk.floordiv %at, %four : !pk.tile<64xi32>
  %by = pk.mod %at, %four : !pk.tile<64xi32>
  %c = pk.gather %L rows %bx dim 0 axes [0, 0, 1][%by, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 16, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %seven = pk.full 7 : i32 : !pk.tile<64xi32>
  %cx = pk.floordiv %at, %seven : !pk.tile<64xi32>
  %cy = pk.mod %at, %seven : !pk.tile<64xi32>
  %e = pk.gather %L rows %cx dim 0 axes [0, 0, 1][%cy, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 16, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %in = pk.mod %at, %sixteen : !pk.tile<64xi32>
  %f = pk.gather %L rows %at dim 0 axes [0, 0, 1][%in, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 16, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
  %number = pk.floordiv %at, %sixteen : !pk.tile<64xi32>
  %few = pk.compare lt, %in, %seven : !pk.tile<64xi32> -> !pk.tile<64xi1>
  %none = pk.full -1 : i32 : !pk.tile<64xi32>
  %some = pk.select %few, %in, %none : !pk.tile<64xi1>, !pk.tile<64xi32>
  %g = pk.gather %L rows %number dim 0 axes [0, 0, 1][%some, %d : !pk.tile<64xi32>, !pk.block<64 by 64>] : !pk.private<[P, 16, 64], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
}
