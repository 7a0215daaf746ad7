package config

import (
	"strings"

	"github.com/kcoord/kcoord/coordinator/group"
)

var legacyPolicies = map[string]group.LegacyPolicy{"deny": group.DenyLegacy, "warn": group.WarnLegacy, "allow": group.AllowLegacy}

// legacyCommits are the keys about transactional commits that name no member.
func legacyCommits() []Key {
	all := choice("transaction.offset.commit.legacy", nil,
		"What happens to transactional offset commits that name neither generation nor member, as clients did before KIP-447: nothing tells one of a stale "+
			"instance apart. `deny` refuses them, with a code that clients take as final for the transaction; `warn` takes them, with a log line that names the client; "+
			"`allow` takes them silently, as Kafka does.", "deny", "warn", "allow")
	all.Later = false
	all.parse = func(c *Config, s string) error {
		p, is := legacyPolicies[strings.ToLower(s)]
		if !is {
			return errValue
		}
		c.Group.LegacyTxnCommit = p
		return nil
	}
	return []Key{all, {
		Name: "transaction.offset.commit.legacy.groups", Allowed: "a list, with commas, of GROUP=POLICY, where POLICY is deny, warn or allow; or empty",
		Doc:   "In which groups another policy holds for such commits: `old-app=allow,other=warn`.",
		parse: parseLegacyGroups,
	}}
}

// parseLegacyGroups cuts at the last =, since a group's id may hold one.
func parseLegacyGroups(c *Config, s string) error {
	c.Group.LegacyTxnCommitOf = nil
	if s == "" {
		return nil
	}
	of := map[string]group.LegacyPolicy{}
	for entry := range strings.SplitSeq(s, ",") {
		entry = strings.TrimSpace(entry)
		at := strings.LastIndexByte(entry, '=')
		if at <= 0 {
			return errValue
		}
		p, is := legacyPolicies[strings.ToLower(entry[at+1:])]
		if _, twice := of[entry[:at]]; !is || twice {
			return errValue
		}
		of[entry[:at]] = p
	}
	c.Group.LegacyTxnCommitOf = of
	return nil
}
