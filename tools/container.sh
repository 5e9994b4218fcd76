#!/bin/sh
# Entry of the image hipress:mxnet.
#
#   node                        run an sshd that starts the processes of jobs
#   cluster HOST... -- COMMAND  wait for all hosts, write them into the file `hosts`,
#                               and run the command (a launcher of a job)
#   COMMAND                     run the command
#
# /keys is a volume that the containers of a cluster share. The first of them makes its keys.
set -eu
if mkdir /keys/making 2>/dev/null; then
  ssh-keygen -q -t ed25519 -N '' -C hipress -f /keys/id
  ssh-keygen -q -t ed25519 -N '' -C hipress -f /keys/host
  cp /keys/id.pub /keys/authorized_keys
  # All containers have the same host key, by the alias in the image's ssh configuration.
  echo "hipress $(cut -d ' ' -f 1,2 /keys/host.pub)" >/keys/known_hosts
  touch /keys/made
fi
tries=0
until [ -e /keys/made ]; do
  tries=$((tries + 1))
  if [ $tries -ge 300 ]; then
    echo "hipress: no keys in /keys after 30 s: mount a volume there that the user $(id -un) may write" >&2
    exit 1
  fi
  sleep 0.1
done

case ${1:-node} in
  node)
    exec /usr/sbin/sshd -D -e ;;
  cluster)
    shift
    : >hosts
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
      echo "$1" >>hosts
      tries=0
      until ssh -o BatchMode=yes -o ConnectTimeout=5 "$1" true 2>/tmp/ssh-error; do
        tries=$((tries + 1))
        if [ $tries -ge 60 ]; then
          echo "hipress: cannot reach $1 by ssh: $(tail -n 1 /tmp/ssh-error)" >&2
          exit 1
        fi
        sleep 1
      done
      shift
    done
    if [ $# -lt 2 ]; then
      echo "usage: cluster HOST... -- COMMAND" >&2
      exit 2
    fi
    shift
    exec "$@" ;;
  *)
    exec "$@" ;;
esac
