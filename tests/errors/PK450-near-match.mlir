// pkc: opt -p pk-cse,pk-canonicalise
