from pkc.language import *

(M,) = dims("M")
ROWS = blocks(M, 128)
