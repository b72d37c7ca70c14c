--[[
Slurm burst buffer plugin (slurm.conf: BurstBufferType=burst_buffer/lua; this file beside slurm.conf). Instead of
the prolog: slurmctld stages on all nodes of a job at once, through their agents, before the job starts.

  #!/bin/bash
  #BB_LUA dsc=flowers,birds

Nothing here fails a job: what could not be staged, the job's own `dsc prepare` stages or explains.
DSC below is the command with its options; slurmctld's host needs a dsc.yaml with the cluster's record.
]]
local DSC = os.getenv("DSC") or "dsc"
local DEADLINE_SECONDS = 600

-- Only characters of dataset names get through, so nothing in a job script can become a command.
local function datasets_of(job_script)
  local datasets = {}
  local file = io.open(job_script, "r")
  if file == nil then return datasets end
  for line in file:lines() do
    local names = line:match("^#BB_LUA%s+dsc=([%w%._,%-]+)")
    if names ~= nil then
      for name in names:gmatch("[^,]+") do table.insert(datasets, name) end
    end
  end
  file:close()
  return datasets
end

local function run(command)
  slurm.log_info("dsc: %s", command)
  local pipe = io.popen(command .. " 2>&1")
  if pipe == nil then return "" end
  local text = pipe:read("*a")
  pipe:close()
  return text
end

local function as_job(job_id)
  return string.format("SLURM_JOB_ID=%d timeout --kill-after=5 %d %s", job_id, DEADLINE_SECONDS + 15, DSC)
end

function slurm_bb_job_process(job_script)
  return slurm.SUCCESS
end

function slurm_bb_pools()
  return slurm.SUCCESS, '{"pools":[]}'
end

function slurm_bb_job_teardown(job_id, job_script, hurry)
  run(as_job(job_id) .. " release --all --any-node --quiet")
  return slurm.SUCCESS, ""
end

function slurm_bb_setup(job_id, uid, gid, pool, bb_size, job_script)
  return slurm.SUCCESS, ""
end

function slurm_bb_data_in(job_id, job_script)
  return slurm.SUCCESS, ""
end

function slurm_bb_test_data_in(job_id, job_script)
  return slurm.SUCCESS, ""
end

function slurm_bb_real_size(job_id)
  return slurm.SUCCESS, "0"
end

function slurm_bb_paths(job_id, job_script, path_file)
  return slurm.SUCCESS, ""
end

function slurm_bb_pre_run(job_id, job_script)
  local datasets = datasets_of(job_script)
  if #datasets == 0 then return slurm.SUCCESS, "" end
  local hosts = run(string.format("squeue --noheader --jobs=%d --format=%%N", job_id)):match("%S+") or ""
  local nodes = run(string.format("scontrol show hostnames '%s'", hosts:gsub("[^%w%._,%-%[%]]", "")))
  nodes = nodes:gsub("%s+$", ""):gsub("%s+", ",")
  for _, dataset in ipairs(datasets) do
    local command = "%s prepare %s --nodes %s --prolog --deadline %ds --quiet"
    slurm.log_info("dsc: %s", run(string.format(command, as_job(job_id), dataset, nodes, DEADLINE_SECONDS)))
  end
  return slurm.SUCCESS, ""
end

function slurm_bb_post_run(job_id, job_script)
  return slurm.SUCCESS, ""
end

function slurm_bb_data_out(job_id, job_script)
  return slurm.SUCCESS, ""
end

function slurm_bb_test_data_out(job_id, job_script)
  return slurm.SUCCESS, ""
end

function slurm_bb_get_status(...)
  return slurm.SUCCESS, ""
end
