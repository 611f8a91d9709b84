// pkc: opt
pk.kernel @copy(%A: !pk.private<[M], f32> {pk.name = "A}) {
}
