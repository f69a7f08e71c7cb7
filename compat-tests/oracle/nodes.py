"""What `conformance` runs the walks against: brokers of ours or Apache Kafka's, one or several, on free ports in directories of their own.

A cluster is prepared before walks go over it: the topics of the coordinators have a replica on every node, led by the first node, and the
active controller is another node. So all steps can go to one node, which then leads and coordinates but has to pass on what changes metadata.
"""
import json, os, random, shutil, signal, socket, subprocess, sys, tempfile, time, urllib.error, urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
KAFKA = os.path.join(HERE, "kafka")
START_SECONDS_MAX = 60
PREPARE_SECONDS_MAX = 120
RAW_SECONDS_MAX = 180
INTERNAL_TOPICS = ["__consumer_offsets", "__transaction_state", "__share_group_state"]


def free_ports(count):
    """Ports that are free now; kept apart by holding all of them open until all are known."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def free_base(count):
    """A port from which on those of so many Kafka nodes are free, below the range that outgoing connections take theirs from."""
    for base in random.sample(range(10_500, 30_000), 200):
        try:
            for port in (base + 10 * n + listener for n in range(count) for listener in (0, 1)):
                socket.create_server(("127.0.0.1", port)).close()
            return base
        except OSError:
            continue
    raise SystemExit("conformance: no free ports")


def raw(address, steps):
    """The answers to these steps, as parsed JSON."""
    lines = "".join(json.dumps(s) + "\n" for s in steps)
    done = subprocess.run([KAFKA, "raw", address], input=lines, text=True, capture_output=True, timeout=RAW_SECONDS_MAX)
    return [json.loads(line) for line in done.stdout.splitlines()]


class Node:
    """One process of ours."""

    def __init__(self, binary, directory, settings):
        self.command = [binary, "serve"]
        for key, value in settings.items():
            self.command += ["--set", f"{key}={value}"]
        self.http = settings["http.listener"]
        self.log = os.path.join(directory, f"{settings['node.id']}.log")
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=open(self.log, "a"), stderr=subprocess.STDOUT)

    def wait(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://{self.http}/readyz", timeout=1).close()
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.02)
        sys.stderr.write(open(self.log).read()[-4000:])
        raise SystemExit(f"conformance: the broker did not get ready: {' '.join(self.command)}")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Barnabas:
    """One node of ours or several, with the settings of the brokers that the answers were recorded from."""

    def __init__(self, binary, count):
        self.directory = tempfile.mkdtemp(prefix="conformance-")
        ports = free_ports(3 * count)
        clients, controllers, pages = (ports[i::3] for i in range(3))
        self.addresses = [f"127.0.0.1:{port}" for port in clients]
        self.nodes = []
        try:
            for i in range(count):
                listeners = f"PLAINTEXT://{self.addresses[i]}"
                settings = {
                    "node.id": i + 1, "broker.rack": f"rack{i + 1}", "advertised.listeners": listeners,
                    "inter.broker.listener.name": "PLAINTEXT", "log.dirs": f"{self.directory}/data{i + 1}", "http.listener": f"127.0.0.1:{pages[i]}",
                    "offsets.topic.replication.factor": min(count, 3), "group.initial.rebalance.delay.ms": 0,
                }
                if count > 1:
                    listeners += f",CONTROLLER://127.0.0.1:{controllers[i]}"
                    settings["controller.quorum.voters"] = ",".join(f"{n + 1}@127.0.0.1:{port}" for n, port in enumerate(controllers))
                self.nodes.append(Node(binary, self.directory, settings | {"listeners": listeners}))
            for node in self.nodes:
                node.wait()
            if count > 1:
                self.lead_elsewhere()
                prepare(self.addresses)
        except BaseException:
            self.stop()
            raise

    def lead_elsewhere(self):
        """The first node is not the active controller: it starts again if it is."""
        deadline = time.monotonic() + PREPARE_SECONDS_MAX
        while time.monotonic() < deadline:
            if active_controller(self.addresses[1]) not in (1, -1):
                return
            self.nodes[0].stop()
            self.nodes[0].start()
            self.nodes[0].wait()
        raise SystemExit("conformance: the first node stays the active controller")

    def ended(self):
        """What a node that ended by itself said last."""
        for node in self.nodes:
            if node.process.poll() is not None:
                return f"{node.log} ended with {node.process.returncode}:\n{open(node.log).read()[-2000:]}"
        return None

    def stop(self):
        for node in self.nodes:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            node.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Kafka:
    """Apache Kafka's nodes, to record from."""

    def __init__(self, count):
        self.directory = tempfile.mkdtemp(prefix="conformance-kafka-")
        self.port = free_base(count)
        self.addresses = [f"127.0.0.1:{self.port + 10 * n}" for n in range(count)]
        try:
            subprocess.run([KAFKA, "start", "--nodes", str(count), "--port", str(self.port), "--dir", self.directory], check=True, stdin=subprocess.DEVNULL)
            if count > 1:
                prepare(self.addresses)
        except BaseException:
            self.stop()
            raise

    def ended(self):
        return None

    def stop(self):
        subprocess.run([KAFKA, "stop", "--port", str(self.port), "--dir", self.directory, "--wipe"], stdin=subprocess.DEVNULL)
        shutil.rmtree(self.directory, ignore_errors=True)


def active_controller(address):
    topics = [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]
    answers = raw(address, [{"api": "describe_quorum", "version": 1, "body": {"topics": topics}}])
    try:
        return answers[0]["body"]["topics"][0]["partitions"][0]["leaderId"]
    except (KeyError, IndexError):
        return -1


def until(what, check):
    """Repeats `check` until it is true."""
    deadline = time.monotonic() + PREPARE_SECONDS_MAX
    while not check():
        if time.monotonic() > deadline:
            raise SystemExit(f"conformance: {what} did not happen within {PREPARE_SECONDS_MAX} s")


def prepare(addresses):
    """Every node is there, and the coordinators' topics have a replica on each of them, led by the first."""
    address, everybody = addresses[0], list(range(1, len(addresses) + 1))

    def registered():
        answer = raw(address, [{"api": "describe_cluster", "version": 0}])
        return answer and [b["brokerId"] for b in sorted(answer[0]["body"]["brokers"], key=lambda b: b["brokerId"])] == everybody

    def found():
        keys = ["g", "t", "s:AAAAAAAAAAAAAAAAAAAAAQ:0"]
        answers = raw(address, [{"api": "find_coordinator", "version": 6, "body": {"keyType": kind, "coordinatorKeys": [key]}} for kind, key in enumerate(keys)])
        return all(a["body"]["coordinators"][0]["errorCode"] == 0 for a in answers) and internal()

    def internal():
        answers = raw(address, [{"api": "metadata", "version": 12, "body": {"topics": [{"name": n} for n in INTERNAL_TOPICS], "allowAutoTopicCreation": False}}])
        return [t for t in answers[0]["body"]["topics"] if t["errorCode"] == 0]

    def moved():
        return raw(address, [{"api": "list_partition_reassignments", "body": {"topics": None, "timeoutMs": 5000}}])[0]["body"]["topics"] == []

    def led():
        partitions = [p for t in internal() for p in t["partitions"]]
        if all(p["leaderId"] == 1 and sorted(p["isrNodes"]) == everybody for p in partitions):
            return True
        raw(address, [{"api": "elect_leaders", "version": 2, "body": {"electionType": 0, "topicPartitions": None, "timeoutMs": 5000}}])
        return False

    until("the registration of every node", registered)
    until("the creation of the coordinators' topics", found)
    moves = [{"name": t["name"], "partitions": [{"partitionIndex": p["partitionIndex"], "replicas": everybody} for p in t["partitions"]]} for t in internal()]
    raw(address, [{"api": "alter_partition_reassignments", "version": 0, "body": {"timeoutMs": 30000, "topics": moves}, "timeout": 60000}])
    until("the move of the coordinators' topics", moved)
    until("the first node's leadership of the coordinators' topics", led)
