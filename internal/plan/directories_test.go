package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/windows-machine-config/wmco/internal/host"
	"github.com/windows-machine-config/wmco/internal/nodespec"
	"github.com/windows-machine-config/wmco/internal/plan"
)

// On a configured host, any object other than the node's directory at its path is a difference. The kind of object
// determines whether the node may use the path.
func TestDirectoryConflict_DependsOnObjectAtPath(t *testing.T) {
	const dir = `C:\var\lib\kubelet`
	for name, test := range map[string]struct {
		want     host.Access
		fact     plan.FileFact
		reason   string // of the step; empty for no step
		conflict string // empty if the node may use the path
	}{
		"the folder": {host.AccessReadable, plan.FileFact{Directory: true, Access: host.AccessReadable}, "", ""},
		"a link to another folder": {
			host.AccessReadable, plan.FileFact{LinkTarget: `C:\Users\joe`, Access: host.AccessReadable},
			`a link to C:\Users\joe`, "move it away",
		},
		"a junction, which is a folder as well": {
			host.AccessAdministrators, plan.FileFact{Directory: true, LinkTarget: `C:\Users\joe`, Access: host.AccessAdministrators},
			`a link to C:\Users\joe`, "move it away",
		},
		"a file": {host.AccessInherited, plan.FileFact{Access: host.AccessInherited}, "a file", "move it away"},
		"a folder of a user's": {
			host.AccessReadable, plan.FileFact{Directory: true, Access: host.AccessReadable, Foreign: true},
			"is owned by a non-administrator", "make Administrators the owner",
		},
		"a folder that users may add to": {
			host.AccessReadable, plan.FileFact{Directory: true, Access: host.AccessInherited}, "can be changed by non-administrators", "",
		},
		"a folder that pods cannot read": {
			host.AccessReadable, plan.FileFact{Directory: true, Access: host.AccessAdministrators}, "not be read by them", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, spec := newConfiguredModel(t)
			spec.Directories = append(slices.Clone(spec.Directories), nodespec.Directory{Path: dir, Access: test.want})
			m.Files[dir] = test.fact
			steps := plan.Make(m.Facts, spec).Steps
			switch {
			case test.reason == "" && len(steps) > 0:
				t.Errorf("it has steps: %q", namesOfSteps(steps))
			case test.reason != "" && (len(steps) != 1 || steps[0].Name != "MakeDirectory "+dir ||
				!strings.Contains(steps[0].Reason, test.reason)):
				t.Errorf("got %+v, want a step because of %q", steps, test.reason)
			}
			conflict := plan.DescribeDirectoryConflict(dir, test.fact)
			if test.conflict == "" && conflict != "" ||
				test.conflict != "" && (!strings.Contains(conflict, test.conflict) || !strings.Contains(conflict, dir)) {
				t.Errorf("the obstacle is %q, want %q", conflict, test.conflict)
			}
		})
	}
}

// Restricting access to C:\k revokes all rights of users to the content. The agent first checks for content that
// must not be adopted.
func TestDirectoryConflict_NoneInNodeDirectory(t *testing.T) {
	if conflict := plan.DescribeDirectoryConflict(`C:\k\cni`, plan.FileFact{Directory: true, Foreign: true}); conflict != "" {
		t.Error(conflict)
	}
}
