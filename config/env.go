package config

import (
	"regexp"
	"strings"
)

const envPrefix = "KCOORD_"

// serviceLink matches the variables that Kubernetes sets for a service of the
// name kcoord or kcoord-something; nobody said them.
var serviceLink = regexp.MustCompile(`^KCOORD_(.*_)?(SERVICE_(HOST|PORT(_.*)?)|PORT(_\d+_(TCP|UDP|SCTP).*)?)$`)

// fromEnv takes what is said in the environment: KCOORD_GROUP_MAX_SIZE is group.max.size.
func fromEnv(environ []string) []Setting {
	var all []Setting
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, envPrefix) || serviceLink.MatchString(name) {
			continue
		}
		key := strings.ToLower(strings.ReplaceAll(name[len(envPrefix):], "_", "."))
		all = append(all, Setting{Key: key, Value: value, From: "in the environment as " + name})
	}
	return all
}
