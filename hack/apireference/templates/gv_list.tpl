{{- define "gvList" -}}
# API reference

Every field of the operator's two kinds, generated from `api/v1alpha1`. [windowsinstance.md](windowsinstance.md) and
[windowsdisruptionpolicy.md](windowsdisruptionpolicy.md) say how to use them; [conditions.md](conditions.md) has conditions and reasons.
{{- range . }}
{{ template "gvDetails" . }}
{{- end -}}
{{- end -}}
