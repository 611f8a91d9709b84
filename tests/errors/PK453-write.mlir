// pkc: opt -o missing/out.mlir
builtin.module {
}
