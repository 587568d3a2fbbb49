#!/usr/bin/env bash
# Runs deploy/slurm-array.sbatch for real on one machine: a Slurm controller and a Slurm daemon on loopback, an array of two tasks
# against a server of known times, and the merge of their receipts. Needs root, python3, Debian's slurm-wlm and munge
# (`apt-get install --no-install-recommends slurm-wlm munge`), and `cargo-infergate` or its path as the first argument.
# Everything is in a folder of its own, and every process ends with the script.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
program=$(realpath "$(command -v "${1:-cargo-infergate}")")
folder=$(mktemp -d)
started=()
finish() {
    # By their numbers alone: another Slurm may run here.
    kill "${started[@]}" 2> "$folder/kill.txt" || true
    wait 2> "$folder/wait.txt" || true
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
host=$(hostname -s)

# Messages between Slurm's programs are signed by munge, with a key of this run.
head -c 1024 /dev/urandom > munge.key
chmod 600 munge.key
chmod 755 "$folder"
munged --foreground --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
    --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" > munged.out 2>&1 &
started+=($!)

mkdir state spool
cat > slurm.conf <<CONF
ClusterName=here
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=here Nodes=$host Default=YES State=UP
CONF
export SLURM_CONF=$folder/slurm.conf
wait_for() {
    for _ in $(seq 100); do
        if "$@" > "$folder/wait_for.txt" 2>&1; then return 0; fi
        sleep 0.2
    done
    echo "error: '$*' did not come true in 20 s" >&2
    tail -n 5 "$folder"/*.log >&2
    return 1
}
wait_for test -S munge.socket
slurmctld -D -i > slurmctld.out 2>&1 &
started+=($!)
slurmd -D -N "$host" > slurmd.out 2>&1 &
started+=($!)
wait_for sh -c 'sinfo --noheader --format=%t | grep -qx idle'

# 50 ms to the first of 16 tokens, 20 ms between them.
cat > server.py <<'SERVER'
import http.server
import time

PIECE = b'data: {"choices":[{"index":0,"text":" token"}]}\n\n'
END = b"""data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}

data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":16}}

data: [DONE]

"""


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for token in range(16):
            time.sleep(0.02 if token else 0.05)
            self.send(PIECE)
        self.send(END)
        self.send(b"")

    def send(self, text):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))

    def log_message(self, *words):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_port, flush=True)
server.serve_forever()
SERVER
python3 server.py > port.txt &
started+=($!)
wait_for test -s port.txt

START_AT=$(date -u -d '+20 sec' +%FT%TZ)
export START_AT INFERGATE="$program" MODEL=scripted TARGET="http://127.0.0.1:$(head -n 1 port.txt)"
export FLAGS="--api completions --users 4,8 --duration 10s --input-tokens 64 --output-tokens 16"
# A core here is a machine there: one CPU for each of two tasks, so that both run at once.
sbatch --wait --array=0-1 --cpus-per-task=1 "$root/deploy/slurm-array.sbatch" || echo "a task ended with another code than 0"
for task in 0 1; do
    echo "task $task:"
    grep -e '^note:' -e '^invalid:' -e '^error' "load-$task.txt" || true
done
"$program" load merge load-0.json load-1.json --out load.json
