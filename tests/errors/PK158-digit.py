from pkc.language import *

M, N = dims("M 2N")
