// pkc: opt -p "test-vectorize-matmul{width=4}"
