#!/bin/sh
# What a container of the image does: `node` is an sshd that waits for jobs; `cluster HOST... -- COMMAND`
# waits for the nodes, writes them into the file `hosts` and runs the command, a job of launch.py, say.
# /keys is a volume that the cluster shares; the first container makes its key.
set -eu
mkdir -p /keys
if mkdir /keys/making 2>/dev/null; then
  ssh-keygen -q -t ed25519 -N '' -C hipress -f /keys/id
  ssh-keygen -q -t ed25519 -N '' -C hipress -f /keys/host
  cp /keys/id.pub /keys/authorized_keys
  touch /keys/made
fi
until [ -e /keys/made ]; do sleep 0.1; done

mode=${1:-node}
case $mode in
  node)
    exec /usr/sbin/sshd -D -e -h /keys/host ;;
  cluster)
    shift
    : >hosts
    mkdir -p ~/.ssh && chmod 700 ~/.ssh
    cp /keys/id ~/.ssh/id_ed25519 && chmod 600 ~/.ssh/id_ed25519
    : >~/.ssh/known_hosts
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
      echo "$1" >>hosts
      echo "$1 $(cut -d' ' -f1,2 /keys/host.pub)" >>~/.ssh/known_hosts
      tries=0
      until ssh -o BatchMode=yes -o ConnectTimeout=5 "$1" true 2>/tmp/ssh-error; do
        tries=$((tries + 1))
        if [ $tries -ge 60 ]; then
          echo "hipress: no node answers at $1: $(tail -1 /tmp/ssh-error)" >&2
          exit 1
        fi
        sleep 1
      done
      shift
    done
    [ $# -gt 1 ] || { echo "usage: cluster HOST... -- COMMAND" >&2; exit 2; }
    shift
    exec "$@" ;;
  *)
    exec "$@" ;;
esac
