// pkc: opt -p "pk-cse{,pk-dce"
