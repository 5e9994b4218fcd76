"""Type "auto" of every front end: ranks measure, choose a way, follow it and guard it.

What is measured and how a codec is replaced are the front end's parts (:class:`follower.Front`);
all else is here, and knows no framework.
"""
