package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow contains the fields of a GitHub workflow that the tests check. actionlint checks the other fields.
type workflow struct {
	Jobs map[string]struct {
		Defaults struct {
			Run struct{ Shell string }
		}
		Steps []struct{ Uses, Shell, Run string }
	}
}

// readWorkflows returns all workflows by path.
func readWorkflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there is no workflow: %v", err)
	}
	all := map[string]workflow{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(data, &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[file] = w
	}
	return all
}

// The owner of an action can move a tag to other code.
func TestWorkflows_ActionsPinnedByCommit(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`)
	commits := map[string]string{}
	for file, w := range readWorkflows(t) {
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				if step.Uses == "" {
					continue
				}
				if !pinned.MatchString(step.Uses) {
					t.Errorf("%s uses %s, which is not pinned by its commit", file, step.Uses)
				}
				action, commit, _ := strings.Cut(step.Uses, "@")
				if commits[action] != "" && commits[action] != commit {
					t.Errorf("%s uses %s at %s, and elsewhere at %s", file, action, commit, commits[action])
				}
				commits[action] = commit
			}
		}
	}
}

// The repository scripts that workflows call exist, tested packages exist, and bash can parse the steps.
func TestWorkflows_StepsAreValid(t *testing.T) {
	script := regexp.MustCompile(`(?m)^\.[\w\\/.-]+`)
	packages := regexp.MustCompile(`\./((?:cmd|internal|test)/[\w/]+)`)
	for file, w := range readWorkflows(t) {
		for name, job := range w.Jobs {
			for _, step := range job.Steps {
				found := script.FindAllString(step.Run, -1)
				for _, match := range packages.FindAllStringSubmatch(step.Run, -1) {
					found = append(found, match[1])
				}
				for _, path := range found {
					if _, err := os.Stat(filepath.Join("..", strings.ReplaceAll(path, `\`, "/"))); err != nil {
						t.Errorf("%s, job %s: %v", file, name, err)
					}
				}
				if step.Run == "" || job.Defaults.Run.Shell+step.Shell != "" {
					continue
				}
				if output, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", step.Run).CombinedOutput(); err != nil {
					t.Errorf("%s, job %s: %s", file, name, output)
				}
			}
		}
	}
}
