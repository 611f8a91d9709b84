// pkc: opt -p pk-check-roles
pk.kernel @k(%ready: !pk.signal<[1]> {pk.name = "ready"}) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %rank = pk.rank
  pk.role loader {
    pk.signal %ready at %rank[%zero] by %one : !pk.signal<[1]>
  }
  pk.role storer {
    pk.raise %ready at %rank[%zero] to %one : !pk.signal<[1]>
    pk.wait %ready[%zero] for %one : !pk.signal<[1]>
  }
}
