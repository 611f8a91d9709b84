builtin.module {
  pk.kernel @tiles(%A: !pk.private<[M, K], bf16> {pk.name = "A"}, %B: !pk.pgl<[K, N], bf16, shard 0> {pk.name = "B"}, %L: !pk.private<[K, N], bf16> {pk.name = "L", pk.scratch}, %C: !pk.pgl<[M, N], bf16, replicate> {pk.name = "C"}, %Z: !pk.pgl<[M, K], bf16, shard 0 zigzag> {pk.name = "Z"}, %X: !pk.pgl<[M, K], f32, symmetric> {pk.name = "X", pk.scratch}, %T: !pk.private<[M], i32> {pk.name = "T"}, %R: !pk.signal<[N by 64]> {pk.name = "R"}, %named: !pk.pgl<[ranks, K], i32, replicate> {pk.name = "named", pk.scratch}, %bounds: !pk.private<[M, 10], i32> {pk.name = "bounds", pk.scratch}, %order: !pk.private<[ranks, K], i32> {pk.name = "order", pk.scratch}, %slots: !pk.pgl<[K, N], bf16, symmetric> {pk.name = "slots", pk.scratch}, %scale: f32 {pk.name = "scale"}) attributes {schedule = {stages = 4 : i64}} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rank = pk.rank
    %ranks = pk.dim "ranks"
    %peer = pk.ring_peer %one
    %count = pk.read %T[%zero] : !pk.private<[M], i32>
    %nm = pk.block_count <M by 64> of %rank
    %nn = pk.block_count <N by 64>
    %nk = pk.block_count <K by 64> sharded
    %np = pk.block_count <M by 64> from %zero to %count
    pk.tasks (%i, %j) in (%nm, %nn) {
      %m = pk.block[%i] of %rank : !pk.block<M by 64>
      %n = pk.block[%j] : !pk.block<N by 64>
      %k = pk.block[%zero] of %peer sharded : !pk.block<K by 64>
      %p = pk.block[%i] from %zero to %count : !pk.block<M by 64>
      %before = pk.block[%i] from %zero to %count outside : !pk.block<M by 64>
      %turned = pk.rotate %i by %one of %nm
      %mixed = pk.interleave %i <K by 64> from %peer
      %first = pk.block_position %m : !pk.block<M by 64>
      %low_end = pk.zigzag_position %k : !pk.block<K by 64>
      %high_end = pk.zigzag_position last %k : !pk.block<K by 64>
      %gap = pk.zigzag_gap %k : !pk.block<K by 64>
      %fewer = pk.zigzag_count last <K by 64> of %peer before %gap
      %early = pk.sharded_count <K by 64> before %gap
      %some = pk.visited %one of %nm
      %later = pk.first_visited %one from %zero
      %whole = pk.is_whole %m : !pk.block<M by 64>
      %number = pk.block_number %m : !pk.block<M by 64>
      %owner = pk.owner %k : !pk.block<K by 64>
      %farthest = pk.owner last %k : !pk.block<K by 64>
      %begin = pk.block_index %k in <K by 32> : !pk.block<K by 64>
      %end = pk.block_index last %k in <K by 32> sharded : !pk.block<K by 64>
      %rows = pk.load %T[%p : !pk.block<M by 64>] : !pk.private<[M], i32> -> !pk.tile<64xi32>
      %a = pk.load %A[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.private<[M, K], bf16> -> !pk.tile<64x64xbf16>
      %b = pk.load %B[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.pgl<[K, N], bf16, shard 0> -> !pk.tile<64x64xbf16>
      %near = pk.load %L local %B : !pk.pgl<[K, N], bf16, shard 0>[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] : !pk.private<[K, N], bf16> -> !pk.tile<64x64xbf16>
      %far = pk.fetch %b into %L[%k, %n : !pk.block<K by 64>, !pk.block<N by 64>] ready %R local spread 1 group 8 visited : !pk.private<[K, N], bf16>, !pk.signal<[N by 64]>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %x = pk.load %X at %peer[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.pgl<[M, K], f32, symmetric> -> !pk.tile<64x64xf32>
      %g = pk.gather %A rows %rows[%k : !pk.block<K by 64>] : !pk.private<[M, K], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
      %g2 = pk.gather %A rows %rows dim 1 axes [0, 1][%m : !pk.block<M by 64>] : !pk.private<[M, K], bf16>, !pk.tile<64xi32> -> !pk.tile<64x64xbf16>
      %g3 = pk.gather %A rows %rows dim 0 axes [0, 0][%rows : !pk.tile<64xi32>] : !pk.private<[M, K], bf16>, !pk.tile<64xi32> -> !pk.tile<64xbf16>
      %r = pk.reduce %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.pgl<[M, K], f32, symmetric> -> !pk.tile<64x64xf32>
      %r_top = pk.reduce by "max" %X[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.pgl<[M, K], f32, symmetric> -> !pk.tile<64x64xf32>
      %full = pk.full 0.000000e+00 : f32 : !pk.tile<64x64xf32>
      %low = pk.full 0xff800000 : f32 : !pk.tile<64xf32>
      %true = pk.full true : !pk.tile<64x64xi1>
      %seven = pk.full 7 : i32 : !pk.tile<64xi32>
      %tiny = pk.full 5.000000e-01 : f8E4M3FN : !pk.tile<64xf8E4M3FN>
      %splat = pk.splat %scale : f32 -> !pk.tile<64x64xf32>
      %index = pk.splat %first : index -> !pk.tile<i32>
      %positions = pk.positions %m : !pk.block<M by 64> -> !pk.tile<64xi32>
      %folded = pk.positions %k zigzag %low_end, %high_end, %gap : !pk.block<K by 64> -> !pk.tile<64xi32>
      %wide = pk.broadcast %low axes [0] : !pk.tile<64xf32> -> !pk.tile<64x64xf32>
      %spread = pk.broadcast %index axes [] : !pk.tile<i32> -> !pk.tile<64xi32>
      %t = pk.transpose %b : !pk.tile<64x64xbf16> -> !pk.tile<64x64xbf16>
      %widened = pk.cast %b : !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %parts = pk.fold "pk.row_max" %widened : !pk.tile<64x64xf32> -> !pk.tile<64x8xf32>
      %along = pk.cum_sum %widened : !pk.tile<64x64xf32>
      %again = pk.repeat %parts : !pk.tile<64x8xf32> -> !pk.tile<64x64xf32>
      %larger = pk.enlarge %parts : !pk.tile<64x8xf32> -> !pk.tile<128x64xf32>
      %part = pk.window %larger at [1, 3] : !pk.tile<128x64xf32> -> !pk.tile<32x60xf32>
      %one_row = pk.window %larger at [5, 1] step [0, 2] : !pk.tile<128x64xf32> -> !pk.tile<16xf32>
      %odd = pk.pick %larger at 1 of 2 : !pk.tile<128x64xf32> -> !pk.tile<128x32xf32>
      %turns = pk.zip %odd, %odd : !pk.tile<128x32xf32>, !pk.tile<128x32xf32> -> !pk.tile<128x64xf32>
      %clip = pk.clip %x axis 1 to %k fill 0xff800000 : f32 : !pk.tile<64x64xf32>, !pk.block<K by 64> -> !pk.tile<64x64xf32>
      %neg = pk.neg %clip : !pk.tile<64x64xf32>
      %abs = pk.abs %neg : !pk.tile<64x64xf32>
      %exp = pk.exp %abs : !pk.tile<64x64xf32>
      %exp2 = pk.exp2 %exp : !pk.tile<64x64xf32>
      %log2 = pk.log2 %exp2 : !pk.tile<64x64xf32>
      %sqrt = pk.sqrt %log2 : !pk.tile<64x64xf32>
      %add = pk.add %sqrt, %splat : !pk.tile<64x64xf32>
      %sub = pk.sub %add, %wide : !pk.tile<64x64xf32>
      %mul = pk.mul %sub, %r : !pk.tile<64x64xf32>
      %div = pk.div %mul, %x : !pk.tile<64x64xf32>
      %max = pk.max %div, %x : !pk.tile<64x64xf32>
      %min = pk.min %max, %x : !pk.tile<64x64xf32>
      %floor = pk.floordiv %positions, %seven : !pk.tile<64xi32>
      %mod = pk.mod %floor, %spread : !pk.tile<64xi32>
      %less = pk.compare lt, %min, %full : !pk.tile<64x64xf32> -> !pk.tile<64x64xi1>
      %not = pk.not %less : !pk.tile<64x64xi1>
      %and = pk.and %not, %true : !pk.tile<64x64xi1>
      %or = pk.or %and, %less : !pk.tile<64x64xi1>
      %select = pk.select %or, %min, %full : !pk.tile<64x64xi1>, !pk.tile<64x64xf32>
      %top = pk.row_max %select : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %total = pk.row_sum %select : !pk.tile<64x64xf32> -> !pk.tile<64xf32>
      %mma = pk.mma %g, %t, %select : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %issued = pk.mma_issue %g, %t, %mma : !pk.tile<64x64xbf16>, !pk.tile<64x64xbf16> -> !pk.tile<64x64xf32>
      %awaited = pk.mma_wait %issued left 0 : !pk.tile<64x64xf32>
      %cast = pk.cast %awaited : !pk.tile<64x64xf32> -> !pk.tile<64x64xbf16>
      pk.print "folded" %folded axes [0] to %k : !pk.block<K by 64> : !pk.tile<64xi32>
      pk.print "a part" %clip axes [1] to %k : !pk.block<K by 64> : !pk.tile<64x64xf32>
      pk.print "count" %count axes [] to : : index
      pk.store %mod, %T[%p : !pk.block<M by 64>] : !pk.tile<64xi32>, !pk.private<[M], i32>
      pk.accumulate %cast, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xbf16>, !pk.pgl<[M, N], bf16, replicate>
      pk.scatter_accumulate %cast, %C rows %rows[%n : !pk.block<N by 64>] : !pk.tile<64x64xbf16>, !pk.pgl<[M, N], bf16, replicate>, !pk.tile<64xi32>
      pk.atomic_add %cast, %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.tile<64x64xbf16>, !pk.pgl<[M, N], bf16, replicate>
      pk.scatter_add %cast, %C rows %rows[%n : !pk.block<N by 64>] : !pk.tile<64x64xbf16>, !pk.pgl<[M, N], bf16, replicate>, !pk.tile<64xi32>
      pk.scatter_store %select, %X at %peer rows %rows[%k : !pk.block<K by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, K], f32, symmetric>, !pk.tile<64xi32>
      pk.scatter_store_add %select, %X rows %rows dim 1 axes [0, 1][%m : !pk.block<M by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, K], f32, symmetric>, !pk.tile<64xi32>
      pk.invert %named of %C[%m] to %bounds, %order : !pk.pgl<[ranks, K], i32, replicate>, !pk.pgl<[M, N], bf16, replicate>, !pk.block<M by 64>, !pk.private<[M, 10], i32>, !pk.private<[ranks, K], i32>
      pk.sum_rows %slots by %bounds, %order to %C[%m, %n : !pk.block<M by 64>, !pk.block<N by 64>] : !pk.pgl<[K, N], bf16, symmetric>, !pk.private<[M, 10], i32>, !pk.private<[ranks, K], i32>, !pk.pgl<[M, N], bf16, replicate>
      pk.store %select, %X at %peer[%m, %k : !pk.block<M by 64>, !pk.block<K by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, K], f32, symmetric>
    }
  }
  pk.kernel @protocol(%X: !pk.pgl<[M, 64], f32, symmetric> {pk.name = "X"}, %ready: !pk.signal<[ranks, 2]> {pk.name = "ready"}) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %n = pk.block_count <M by 64>
    pk.role storer warps 1 {
      pk.tasks (%i) in (%n) {
        %rank = pk.rank
        %m = pk.block[%i] : !pk.block<M by 64>
        %d = pk.block[%zero] : !pk.block<64 by 64>
        %x = pk.load %X[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, symmetric> -> !pk.tile<64x64xf32>
        pk.store_add %x, %X at %rank[%m, %d : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.tile<64x64xf32>, !pk.pgl<[M, 64], f32, symmetric>
        pk.signal %ready at %rank[%rank, %one] by %one : !pk.signal<[ranks, 2]>
        pk.signal_all %ready[%rank, %zero] by %one : !pk.signal<[ranks, 2]>
        pk.signal_all %ready from %zero to %rank[%rank, %zero] by %one : !pk.signal<[ranks, 2]>
      }
    }
    pk.role communicator sms 16 {
      %rank_1 = pk.rank
      %part = pk.part
      pk.wait %ready[%rank_1, %zero] for %n : !pk.signal<[ranks, 2]>
      pk.barrier %ready[%rank_1, %one] : !pk.signal<[ranks, 2]>
      pk.reset %ready : !pk.signal<[ranks, 2]>
      %m_1 = pk.block[%zero] : !pk.block<M by 64>
      %d_1 = pk.block[%zero] : !pk.block<64 by 64>
      pk.all_reduce by "min" %X[%m_1, %d_1 : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, symmetric>
      pk.all_reduce %X[%m_1, %d_1 : !pk.block<M by 64>, !pk.block<64 by 64>] : !pk.pgl<[M, 64], f32, symmetric>
    }
    pk.role loader sms 1 warps 4 {
    ^bb0:
    }
    pk.role consumer {
      pk.tasks (%i_1, %j) in (%n, %n) {
      }
    }
  }
  pk.kernel @channels(%X: !pk.private<[M, 64], bf16> {pk.name = "X"}, %Y: !pk.pgl<[M, N, 64], bf16, replicate> {pk.name = "Y"}, %ready: !pk.signal<[M by 128, 4]> {pk.name = "ready"}) {
    %zero = arith.constant 0 : index
    %n = pk.block_count <M by 128>
    %0 = pk.channel "X" stages 4 : !pk.channel<!pk.tile<128x64xbf16>>
    %1 = pk.channel "X, rows" stages 1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128xf32>, !pk.tile<f32>>
    pk.role loader {
      pk.tasks (%i) in (%n) attributes {per_cta} {
        %m = pk.block[%i] : !pk.block<M by 128>
        %d = pk.block[%zero] : !pk.block<64 by 64>
        %number = pk.block_number %m : !pk.block<M by 128>
        %ctas = pk.ctas consumer
        pk.wait %ready[%number, %zero] for %ctas : !pk.signal<[M by 128, 4]>
        pk.acquire %0 : !pk.channel<!pk.tile<128x64xbf16>>
        %x = pk.load %X[%m, %d : !pk.block<M by 128>, !pk.block<64 by 64>] : !pk.private<[M, 64], bf16> -> !pk.tile<128x64xbf16>
        pk.commit %0, %x : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
        %epoch = pk.epoch
        %rank = pk.rank
        pk.raise %ready at %rank[%number, %zero] to %epoch {order = "release_gpu"} : !pk.signal<[M by 128, 4]>
      }
    }
    pk.role storer {
      pk.tasks (%i_1) in (%n) attributes {per_cta} {
        %x_1, %rows, %scalar = pk.consume %1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128xf32>, !pk.tile<f32>> -> !pk.tile<128x64xbf16>, !pk.tile<128xf32>, !pk.tile<f32>
        pk.fence async_shared
        pk.fence acquire_sys
        pk.drain read
        pk.drain read left 1
        pk.drain full left 3
        pk.release %0 deferred 3 : !pk.channel<!pk.tile<128x64xbf16>>
        pk.release_deferred %0 : !pk.channel<!pk.tile<128x64xbf16>>
        pk.send_deferred left 3 batch 4
        pk.drain loads
        pk.release %1 : !pk.channel<!pk.tile<128x64xbf16>, !pk.tile<128xf32>, !pk.tile<f32>>
      }
    }
    pk.role copy_engine {
      pk.tasks (%i_2) in (%n) attributes {per_cta} {
        %m_1 = pk.block[%i_2] : !pk.block<M by 128>
        pk.copy %X[%m_1 : !pk.block<M by 128>] along [0] to %Y[%m_1, %zero : !pk.block<M by 128>, index] along [0, 1] : !pk.private<[M, 64], bf16> to !pk.pgl<[M, N, 64], bf16, replicate>
      }
    }
  }
  pk.kernel @machine(%X: !pk.pgl<[M, 64], bf16, shard 0> {pk.name = "X"}, %Y: !pk.private<[M, 64], f32> {pk.name = "Y"}, %ready: !pk.signal<[ranks]> {pk.name = "ready"}) attributes {threads = 128 : i64} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %four = arith.constant 4 : index
    %shared = pk.instruction "shared_base"() : () -> index
    %stride = pk.launch_value "heap_stride"
    %epochs = pk.launch_value "epochs"
    %counter = pk.address %ready : !pk.signal<[ranks]>
    %y = pk.address %Y : !pk.private<[M, 64], f32>
    %xs = pk.tensor_map %X last %zero box [64, 64, 1] swizzle 128 split 0 : !pk.pgl<[M, 64], bf16, shard 0>
    %ys = pk.tensor_map %Y last %zero box [16, 64] swizzle 0 : !pk.private<[M, 64], f32>
    pk.comment "both at once"
    pk.instruction "tma_load_3d"(%shared, %xs, %shared, %zero, %zero, %one) : (index, !pk.map, index, index, index, index) -> ()
    %acc = pk.registers : !pk.registers<8xf32>
    %bits = pk.registers : !pk.registers<4xui32>
    %low = pk.subview %acc from 4 : !pk.registers<8xf32> -> !pk.registers<4xf32>
    scf.for %i = %zero to %four step %one {
      %x = pk.get %low[%i] : !pk.registers<4xf32> -> f32
      %packed = pk.instruction "pack_bf16"(%x, %x) : (f32, f32) -> ui32
      pk.set %packed, %bits[%i] : ui32, !pk.registers<4xui32>
    } {unroll}
    pk.instruction "store_global_v4"(%bits, %y) : (!pk.registers<4xui32>, i64) -> ()
  }
}
