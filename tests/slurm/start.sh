#!/usr/bin/env bash
# A Slurm cluster of one node in the folder $1, for whoever calls it, until standard input ends.
# Needs Debian's slurm-wlm and munge. Says "ready" when jobs can be submitted with
# SLURM_CONF=$1/slurm.conf. Pretends to four cores, keeps no accounts, and brings requeued jobs back
# after seconds, not minutes.
set -euo pipefail
cd "$1"
PATH=$PATH:/usr/sbin:/sbin
ports() {  # of servers, free now
    python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(one.getsockname()[1] for one in held))'
}
read -r controller node < <(ports)
mkdir -p state spool
chmod 700 .
dd if=/dev/urandom of=munge.key bs=1024 count=1 status=none
chmod 600 munge.key
cat > slurm.conf <<END
ClusterName=tests
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=$controller
SlurmdPort=$node
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$PWD/munge.socket,cred_expire=5
StateSaveLocation=$PWD/state
SlurmdSpoolDir=$PWD/spool
SlurmctldPidFile=$PWD/slurmctld.pid
SlurmdPidFile=$PWD/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1
KillWait=60
ReturnToService=2
NodeName=$(hostname) NodeAddr=127.0.0.1 CPUs=4
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP
END
export SLURM_CONF=$PWD/slurm.conf
stop() {  # what still runs, and then the servers
    scancel --signal=KILL --full --user="$(id -un)" && scancel --user="$(id -un)"
    while [ -n "$(squeue --noheader)" ]; do sleep 0.1; done
    kill $(jobs -p)
    wait
} 2> /dev/null
trap stop EXIT
munged --foreground --force --key-file="$PWD/munge.key" --socket="$PWD/munge.socket" \
    --pid-file="$PWD/munge.pid" --log-file="$PWD/munge.log" --seed-file="$PWD/munge.seed" \
    &> munged.log < /dev/null &
until [ -S munge.socket ]; do sleep 0.05; done
slurmctld -D &> slurmctld.log < /dev/null &
slurmd -D -N "$(hostname)" &> slurmd.log < /dev/null &
until [ "$(sinfo --noheader --format=%t 2> /dev/null)" = idle ]; do
    kill -0 %2 %3 2> /dev/null || { cat slurmctld.log slurmd.log >&2; exit 1; }
    sleep 0.1
done
echo ready
cat > /dev/null
