// pkc: opt -p inline
