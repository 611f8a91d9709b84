// pkc: opt -p pk-lower-tiles
pk.kernel @copy(%X: !pk.private<[M], f32> {pk.name = "X"}) attributes {derived} {
  pk.role loader {
    %0 = pk.rank
  }
}
