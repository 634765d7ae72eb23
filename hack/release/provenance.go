package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// statement is a Statement of in-toto with the predicate of SLSA. The types that others offer are generated from
// protobuf, whose JSON is not the same from one run to the next; a release's is.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []subject  `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     provenance `json:"predicate"`
	}
	subject struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	provenance struct {
		BuildDefinition definition `json:"buildDefinition"`
		RunDetails      runDetails `json:"runDetails"`
	}
	definition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	}
)

// repository is where the sources are.
const repository = "https://github.com/windows-machine-config/wmco"

// writeProvenance says of each file, and of the image, from which commit it was built, and how. It has no time, so that
// two runs are the same, and no signature.
func writeProvenance(folder string, o options, image string, sums []sum) error {
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	s.Subject = append(s.Subject, subject{Name: "windows-machine-config-operator", Digest: map[string]string{"sha256": image}})
	for _, one := range sums {
		s.Subject = append(s.Subject, subject{Name: one.name, Digest: map[string]string{"sha256": one.sha256}})
	}
	s.Predicate.BuildDefinition = definition{
		BuildType:          repository + "/blob/main/docs/releasing.md",
		ExternalParameters: map[string]string{"version": o.version, "target": "release"},
		InternalParameters: map[string]string{"go": runtime.Version()},
		ResolvedDependencies: []subject{{URI: "git+" + repository + "@refs/tags/v" + o.version,
			Digest: map[string]string{"gitCommit": o.commit}}},
	}
	s.Predicate.RunDetails.Builder.ID = repository + "/blob/main/Makefile"
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, provenanceFile), append(data, '\n'), 0o644)
}
