package archtest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kcoord/kcoord/"

// pkg is what go list tells of a package; tests and their imports are not part of it.
type pkg struct {
	Dir        string
	ImportPath string
	GoFiles    []string
	Imports    []string
}

// rule says what the packages under a path may import. A path ends with "/..."
// when it stands for all below it, too.
type rule struct {
	of    []string
	never []string
	only  []string // of this module; nil: anything
	std   bool     // and beside it the standard library alone
	why   string
}

// world is what a state machine must not reach.
var world = []string{"net/...", "os/...", "sync/...", "syscall", "context", "log/...", "math/rand/..."}

var rules = []rule{
	{
		of:    []string{"coordinator/group/...", "coordinator/txn", "coordinator/txn/state"},
		never: append([]string{"coordinator", "coordinator/shard/...", "storage/...", "api/...", "cmd/..."}, world...),
		why:   "decisions are deterministic: they see records and requests, never disks, networks or other goroutines",
	},
	{of: []string{"coordinator/group/..."}, never: []string{"coordinator/txn/..."}, why: "groups and transactions don't know each other"},
	{of: []string{"coordinator/txn/..."}, never: []string{"coordinator/group/..."}, why: "groups and transactions don't know each other"},
	{of: []string{"coordinator/machine"}, only: []string{"storage"}, std: true, why: "the contract is a leaf"},
	{of: []string{"coordinator/shard"}, only: []string{"coordinator/machine", "storage"}, why: "the runner knows the contracts alone"},
	{of: []string{"coordinator"}, never: []string{"api/...", "cmd/...", "storage/pebblelog", "storage/memlog"}, why: "imports point down"},
	{of: []string{"storage"}, only: []string{}, std: true, why: "the contract is a leaf"},
	{of: []string{"storage/pebblelog", "storage/memlog"}, only: []string{"storage", "storage/recordlog"}, why: "backends know the contract alone"},
	{of: []string{"storage/recordlog"}, only: []string{"storage"}, why: "record batches are bytes in, bytes out"},
	{of: []string{"groupmeta", "txnlog"}, only: []string{"internal/recordbin"}, std: true, why: "codecs are leaves"},
	{of: []string{"api/..."}, never: []string{"cmd/...", "storage/...", "coordinator/shard", "coordinator/group/state"}, why: "the edge asks the node, not what is below it"},
	{of: []string{"client"}, only: []string{"api/admin/adminpb"}, why: "other programs import it: nothing of the server comes along"},
	{of: []string{"config"}, never: []string{"api/...", "cmd/...", "coordinator/shard", "storage/..."}, why: "settings are data"},
}

// exempt are storage's contract, which records and machines are told in.
var exempt = []string{"storage"}

func TestImportsPointOneWay(t *testing.T) {
	all := list(t)
	for _, r := range rules {
		for _, p := range all {
			if !matches(r.of, p.ImportPath) {
				continue
			}
			for _, i := range p.Imports {
				if complaint := r.complain(i); complaint != "" {
					t.Errorf("%s imports %s: %s: %s", p.ImportPath, i, complaint, r.why)
				}
			}
		}
	}
}

func (r rule) complain(path string) string {
	ours, inside := strings.CutPrefix(path, module)
	switch {
	case matches(r.never, path) && !slices.Contains(exempt, ours):
		return "never"
	case r.only != nil && inside && !matches(r.only, path):
		return "of this module only " + strings.Join(r.only, ", ")
	case r.std && !inside && strings.Contains(strings.Split(path, "/")[0], "."):
		return "of others only the standard library"
	}
	return ""
}

func TestRulesBite(t *testing.T) {
	for _, tc := range []struct{ of, imports string }{
		{"coordinator/group", "net/http"}, {"coordinator/group/state", "sync"}, {"coordinator/group", module + "storage/memlog"},
		{"coordinator/machine", "github.com/rs/zerolog"}, {"coordinator/shard", module + "coordinator/group"}, {"api/kafka", module + "storage"},
	} {
		bitten := slices.ContainsFunc(rules, func(r rule) bool { return matches(r.of, tc.of) && r.complain(tc.imports) != "" })
		if !bitten && !slices.Contains(exempt, strings.TrimPrefix(tc.imports, module)) {
			t.Errorf("%s may import %s", tc.of, tc.imports)
		}
	}
}

// matches takes paths inside the module without its name.
func matches(patterns []string, path string) bool {
	path = strings.TrimPrefix(path, module)
	for _, p := range patterns {
		base, below := strings.CutSuffix(p, "/...")
		if path == base || below && strings.HasPrefix(path, base+"/") {
			return true
		}
	}
	return false
}

// timeless are the packages that are told the time, and what of package time
// would ask for it.
var (
	timeless = []string{"coordinator/group/...", "coordinator/machine", "coordinator/txn", "coordinator/txn/state", "groupmeta", "txnlog"}
	asking   = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}
)

func TestDecisionsAreToldTheTime(t *testing.T) {
	for _, p := range list(t) {
		if !matches(timeless, p.ImportPath) {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: a decision starts a goroutine", fset.Position(n.Pos()))
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(asking, n.Sel.Name) {
						t.Errorf("%s: time.%s: the time comes in as an argument", fset.Position(n.Pos()), n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

// list asks the go command for the module's packages.
func list(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=Dir,ImportPath,GoFiles,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
