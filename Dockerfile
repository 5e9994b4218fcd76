# Images with HiPress and its examples for processors: one with PyTorch, one with MXNet.
#
#   docker build --target pytorch --tag hipress:pytorch .
#   docker build --target mxnet --tag hipress:mxnet .
#
# compose.yaml starts a job of each. A wheel in dist/ (`make wheel`) is installed as it is. Without
# one the package is compiled here, which takes minutes.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS wheel
WORKDIR /src
COPY . .
RUN mkdir -p dist && if ! ls dist/hipress-*.whl >/dev/null 2>&1; then \
      apt-get update && apt-get install -y --no-install-recommends \
        cmake g++ libssl-dev ninja-build python3-dev python3-pip && \
      python3 -m pip wheel --no-deps --wheel-dir dist . ; \
    fi

# Jobs run as the user hipress. Their code is in /hipress, the package in /opt/hipress.
FROM ${BASE} AS base
RUN apt-get update && apt-get install -y --no-install-recommends python3 python3-venv && \
    rm -rf /var/lib/apt/lists/* && \
    useradd --uid 1000 --create-home hipress && \
    install -d -o hipress -g hipress /hipress && \
    python3 -m venv /opt/hipress
ENV PATH=/opt/hipress/bin:$PATH PYTHONUNBUFFERED=1
WORKDIR /hipress

# One process per rank, started by torchrun in each container. Without a command, it reports what is
# here.
FROM base AS pytorch
# PyTorch without CUDA, gigabytes smaller. Empty: PyTorch from the usual package index.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN --mount=type=bind,from=wheel,source=/src/dist,target=/dist \
    pip install --no-cache-dir ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
      "$(ls /dist/hipress-*.whl)[torch,demo]"
COPY --chown=hipress examples examples
USER hipress
CMD ["hipress", "doctor"]

# Containers of a cluster: an sshd each, which starts the processes of a launcher's job.
FROM base AS mxnet
# MXNet's wheel needs the first two packages of the system, and the launcher the others.
RUN apt-get update && apt-get install -y --no-install-recommends \
      libgomp1 libquadmath0 openssh-client openssh-server rsync && \
    rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*_key*
RUN --mount=type=bind,from=wheel,source=/src/dist,target=/dist \
    pip install --no-cache-dir "$(ls /dist/hipress-*.whl)[mxnet,demo]"
COPY --chown=hipress examples examples
COPY tools/container.sh /usr/local/bin/hipress-container
# The cluster's keys are in the volume /keys. An ssh session does not have the image's PATH. A port
# above 1024, because sshd does not run as root.
RUN printf '%s\n' 'Port 2222' 'PidFile none' 'PasswordAuthentication no' 'HostKey /keys/host' \
      'AuthorizedKeysFile /keys/authorized_keys' 'StrictModes no' 'UsePAM no' "SetEnv PATH=$PATH" \
      >/etc/ssh/sshd_config.d/hipress.conf && \
    printf '%s\n' 'Port 2222' 'IdentityFile /keys/id' 'UserKnownHostsFile /keys/known_hosts' \
      'HostKeyAlias hipress' >/etc/ssh/ssh_config.d/hipress.conf && \
    install -d -o hipress -g hipress -m 700 /keys
USER hipress
# `node` waits for jobs. `cluster HOST... -- COMMAND` runs a command when all hosts can be reached.
ENTRYPOINT ["hipress-container"]
CMD ["node"]
