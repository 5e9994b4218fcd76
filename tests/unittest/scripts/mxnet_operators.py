"""Loads the operators and encodes three numbers."""

import mxnet as mx

import mxnet_hipress

mxnet_hipress.load_operators()
print(mx.nd.contrib.encode_fp16(mx.nd.ones(3)).asnumpy().tolist())
