// pkc: opt -p pk-check-roles
pk.kernel @k(%X: !pk.private<[M], f32> {pk.name = "X"}, %arrived: !pk.signal<[M by 16]> {pk.name = "arrived"}) attributes {derived} {
  %one = arith.constant 1 : index
  %rank = pk.rank
  pk.role storer {
    %n = pk.block_count <M by 16> sharded
    pk.tasks (%i) in (%n) attributes {per_cta} {
      %m = pk.block[%i] sharded : !pk.block<M by 16>
      %owner = pk.owner %m : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.signal %arrived at %owner[%number] by %one : !pk.signal<[M by 16]>
    }
  }
  pk.role communicator {
    %own = pk.block_count <M by 16> of %rank sharded
    %ranks = pk.dim "ranks"
    %epoch = pk.epoch
    %less = arith.subi %ranks, %one : index
    %wanted = arith.muli %less, %epoch : index
    pk.tasks (%i) in (%own) attributes {per_cta} {
      %m = pk.block[%i] of %rank sharded : !pk.block<M by 16>
      %number = pk.block_number %m : !pk.block<M by 16>
      pk.wait %arrived[%number] for %wanted : !pk.signal<[M by 16]>
    }
  }
}
