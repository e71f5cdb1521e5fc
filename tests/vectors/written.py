# SPDX-License-Identifier: Apache-2.0
"""Test vectors in the draft's format, from the Python reference."""
from dataclasses import dataclass, field

from reference import P, Refused, decode, encode

CTX = b"crowdveil test vector"


@dataclass
class Report:
    """A measurement that is sharded, or, with `shares`, what a client sends that does something else."""
    nonce: bytes
    rand: bytes
    measurement: int | None = None
    shares: list | None = None


@dataclass
class Vector:
    prio: object
    key: bytes
    ctx: bytes = CTX
    operations: list = field(default_factory=list)
    reports: list = field(default_factory=list)

    def operation(self, name, success=True, **which):
        self.operations.append({"operation": name, "success": success, **which})
        return success

    def add(self, report):
        """Runs a report through the reference, and records what happens. True if it is accepted."""
        index, shares, sharded = len(self.reports), report.shares, report.shares is None
        if sharded:
            shares = self.prio.split(self.ctx, self.prio.encode(report.measurement), report.rand)
            self.operation("shard", report_index=index)
        entry = {"measurement": report.measurement, "nonce": report.nonce.hex(), "rand": report.rand.hex(),
                 "public_share": "", "input_shares": [share.hex() for share in shares], "verifier_shares": [],
                 "verifier_messages": [], "out_shares": []}
        self.reports.append(entry)
        verified = []
        for aggregator, share in enumerate(shares):
            try:
                verified.append(self.prio.verify(self.key, self.ctx, aggregator, report.nonce, share))
            except Refused:
                return self.operation("verify_init", False, report_index=index, aggregator_id=aggregator)
            self.operation("verify_init", report_index=index, aggregator_id=aggregator)
        entry["verifier_shares"] = [[encode(verifier).hex() for verifier, _ in verified]]
        accepted = self.prio.accepts([verifier for verifier, _ in verified])
        self.operation("verifier_shares_to_message", accepted, report_index=index, round=0)
        if accepted:
            entry["verifier_messages"] = [""]
            entry["out_shares"] = [encode([output]).hex() for _, output in verified]
            for aggregator in range(self.prio.shares):
                self.operation("verify_next", report_index=index, aggregator_id=aggregator, round=1)
        return accepted

    def document(self):
        """The file's content; with sums, if a report is accepted."""
        document = {"shares": self.prio.shares, "verify_key": self.key.hex(), "ctx": self.ctx.hex(), "agg_param": "",
                    "reports": self.reports, "agg_shares": [], "agg_result": None}
        if self.prio.maximum is not None:
            document["max_measurement"] = self.prio.maximum
        out = [report["out_shares"] for report in self.reports if report["out_shares"]]
        operations = list(self.operations)
        if out:
            sums = [sum(decode(bytes.fromhex(share))[0] for share in shares) % P for shares in zip(*out)]
            document["agg_shares"] = [encode([total]).hex() for total in sums]
            document["agg_result"] = sum(sums) % P
            operations += [{"operation": "aggregate", "success": True, "aggregator_id": aggregator}
                           for aggregator in range(self.prio.shares)]
            operations.append({"operation": "unshard", "success": True})
        return {**document, "operations": operations}
