// Who consumes what was written into a stage of another channel releases it for that channel too.
// RUN: pkc-opt %s -p pk-release-shared --split-input-file | filecheck %s

// CHECK: [[Q:%.*]] = pk.channel "Q"
// CHECK: [[O:%.*]] = pk.channel "O" stages 2 in [[Q]]
// CHECK: pk.role consumer
// CHECK-NOT: pk.release
// CHECK: pk.role storer
// CHECK: pk.release [[O]] deferred 1
// CHECK-NEXT: pk.release [[Q]] deferred 1
// CHECK: pk.release_deferred [[O]]
// CHECK-NEXT: pk.release_deferred [[Q]]
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}) {
  %q = pk.channel "Q" stages 2 : !pk.channel<!pk.tile<128x64xbf16>>
  %o = pk.channel "O" stages 2 in %q : !pk.channel<!pk.tile<128x64xbf16>>
  pk.role consumer {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %a = pk.consume %q : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %q : !pk.channel<!pk.tile<128x64xbf16>>
      pk.acquire %o : !pk.channel<!pk.tile<128x64xbf16>>
      pk.commit %o, %a : !pk.channel<!pk.tile<128x64xbf16>>, !pk.tile<128x64xbf16>
    }
  }
  pk.role storer {
    %n = pk.block_count <M by 128>
    pk.tasks (%i) in (%n) {
      %r = pk.consume %o : !pk.channel<!pk.tile<128x64xbf16>> -> !pk.tile<128x64xbf16>
      pk.release %o deferred 1 : !pk.channel<!pk.tile<128x64xbf16>>
    }
    pk.release_deferred %o : !pk.channel<!pk.tile<128x64xbf16>>
  }
}
