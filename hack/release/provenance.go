package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
)

// statement is an in-toto Statement with the predicate of SLSA. The types of existing libraries are generated from
// protobuf, which does not guarantee the same JSON in each run. A release needs reproducible JSON.
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

// repository is the location of the sources.
const repository = "https://github.com/windows-machine-config/wmco"

// writeProvenance writes the commit and the build command of each file and of the image. For reproducible output,
// it includes neither time nor signature.
func writeProvenance(dir string, o options, image string, sums []sum) error {
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
	return os.WriteFile(filepath.Join(dir, provenanceFile), append(data, '\n'), 0o644)
}
