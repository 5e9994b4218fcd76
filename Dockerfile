# An image with HiPress, MXNet and an sshd: a cluster of such containers runs jobs of `launch.py -H`.
# compose.yaml makes one of three. A wheel in dist/ (`make wheel`) is taken as it is; without one the
# package is compiled here, which takes minutes.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS wheel
WORKDIR /src
COPY . .
RUN mkdir -p dist && if ! ls dist/hipress-*.whl >/dev/null 2>&1; then \
      apt-get update && apt-get install -y --no-install-recommends \
        cmake g++ libasio-dev libssl-dev libxxhash-dev ninja-build python3-dev python3-pip && \
      python3 -m pip wheel --no-deps --wheel-dir dist . ; \
    fi

FROM ${BASE}
# What MXNet's wheel needs of the system, and the launcher's two ends.
RUN apt-get update && apt-get install -y --no-install-recommends \
      libgomp1 libquadmath0 libssl3 openssh-client openssh-server python3 python3-venv rsync && \
    rm -rf /var/lib/apt/lists/* && mkdir -p /run/sshd
COPY --from=wheel /src/dist/hipress-*.whl /tmp/
RUN python3 -m venv /opt/hipress && \
    wheel=$(ls /tmp/hipress-*.whl) && \
    /opt/hipress/bin/pip install --no-cache-dir "$wheel[mxnet,demo]" && rm "$wheel"
ENV PATH=/opt/hipress/bin:$PATH
WORKDIR /hipress
COPY examples examples
COPY tools/container.sh /usr/local/bin/hipress-container
# A session of ssh has another PATH than the image, and no variables of it.
RUN printf '%s\n' 'PasswordAuthentication no' 'AuthorizedKeysFile /keys/authorized_keys' \
      'StrictModes no' "SetEnv PATH=$PATH" >/etc/ssh/sshd_config.d/hipress.conf && \
    rm -f /etc/ssh/ssh_host_*_key*
# "node" waits for jobs; anything else is run with the keys of the cluster.
ENTRYPOINT ["hipress-container"]
CMD ["node"]
