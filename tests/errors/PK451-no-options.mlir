// pkc: opt -p "pk-cse{deep=true}"
